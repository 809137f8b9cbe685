// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
)

func TestRefuseMember(t *testing.T) {
	now := metav1.Now()
	cluster := func(uid string) *registrationv1alpha1.Cluster {
		c := &registrationv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "edge", Annotations: map[string]string{AnnotationMember: "edge"}}}
		if uid != "" {
			c.Annotations[AnnotationMemberUID] = uid
		}
		return c
	}
	mc := func(uid types.UID, deleted *metav1.Time) *clusterv1beta1.MemberCluster {
		return &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge", UID: uid, DeletionTimestamp: deleted}}
	}
	madeFor := func(cluster string) *clusterv1beta1.MemberCluster {
		made := mc("uid", nil)
		made.Annotations = map[string]string{AnnotationClusterUID: cluster}
		return made
	}
	conflict := registrationv1alpha1.RegistrationReasonConflict
	tests := map[string]struct {
		remembered string
		mc         *clusterv1beta1.MemberCluster
		want       string
	}{
		"no member yet":                   {"", nil, ""},
		"administrator removed the UID":   {"", mc("new", nil), ""},
		"member exists":                   {"uid", mc("uid", nil), ""},
		"member was deleted":              {"uid", nil, conflict},
		"member is leaving":               {"uid", mc("uid", &now), conflict},
		"other member with the same name": {"uid", mc("new", nil), conflict},
		"member of another Cluster":       {"uid", madeFor("other"), conflict},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := reasonOf(refuseMember(cluster(tc.remembered), tc.mc)); got != tc.want {
				t.Errorf("reason %q, want %q", got, tc.want)
			}
		})
	}
}

func TestShareMetadata_FollowsLabelsOfCluster(t *testing.T) {
	cluster := &registrationv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: "clusters", Name: "edge", UID: "uid", Labels: map[string]string{"env": "prod", "tier": "1", "fleet.cattle.io/cluster": "edge"},
		Annotations: map[string]string{registrationv1alpha1.AnnotationApproval: registrationv1alpha1.ApprovalManual},
	}}
	mc := desiredMember(cluster, "edge", CountSelfAssigned)
	if mc.IsApproved() {
		t.Error("unapproved member is not tainted")
	}
	mc.Labels[clusterv1beta1.LabelMemberName], mc.Labels["zone"] = "edge", "a"

	cluster.Labels = map[string]string{"env": "dev", clusterv1beta1.InfrastructurePrefix + "spot": "true"}
	cluster.Annotations[clusterv1beta1.AnnotationProperties] = "{}"
	shareMetadata(mc, cluster, CountSelfAssigned)
	want := map[string]string{"env": "dev", "zone": "a", clusterv1beta1.LabelMemberName: "edge", clusterv1beta1.InfrastructurePrefix + "spot": "true"}
	if diff := cmp.Diff(want, mc.Labels); diff != "" {
		t.Errorf("labels after a change (-want +got):\n%s", diff)
	}

	if mc.Annotations[clusterv1beta1.AnnotationProperties] != "{}" {
		t.Error("infrastructure is missing")
	}

	cluster.Labels = nil
	delete(cluster.Annotations, clusterv1beta1.AnnotationProperties)
	shareMetadata(mc, cluster, CountSelfAssigned)
	delete(want, "env")
	delete(want, clusterv1beta1.InfrastructurePrefix+"spot")
	if diff := cmp.Diff(want, mc.Labels); diff != "" {
		t.Errorf("labels when the Cluster has none (-want +got):\n%s", diff)
	}
	if _, ok := mc.Annotations[AnnotationClusterLabels]; ok {
		t.Error("label keys are still recorded")
	}
	if !isOrigin(mc, cluster) {
		t.Error("origin is missing")
	}
}

func TestShareMetadata_SelfAssignedLabels(t *testing.T) {
	const agentPod = registrationv1alpha1.LabelCreatedByAgentPod
	request := requestOf(t, func(r *registrationv1alpha1.ClusterRegistration) {
		r.Spec.ClusterLabels = map[string]string{"env": "prod", "foo": "", agentPod: "agent-0", "region": "eu"}
	})
	registered := desiredCluster(applicantOf(request, allowance{approved: true, labels: []string{"env", "foo"}}))
	type labels = map[string]string
	tests := map[string]struct {
		change       func(*registrationv1alpha1.Cluster)
		selfAssigned string
		counted      labels
		ignored      labels
	}{
		"agent's labels": {func(*registrationv1alpha1.Cluster) {}, "env," + agentPod + ",foo",
			labels{"env": "prod", "foo": "", agentPod: "agent-0"}, nil},
		"label changed by an administrator": {func(c *registrationv1alpha1.Cluster) { c.Labels["env"] = "dev" }, agentPod + ",foo",
			labels{"env": "dev", "foo": "", agentPod: "agent-0"}, labels{"env": "dev"}},
		"labels vouched for by an administrator": {func(c *registrationv1alpha1.Cluster) { delete(c.Annotations, AnnotationBroughtLabels) }, "",
			labels{"env": "prod", "foo": "", agentPod: "agent-0"}, labels{"env": "prod", "foo": "", agentPod: "agent-0"}},
		"label removed from the Cluster": {func(c *registrationv1alpha1.Cluster) { delete(c.Labels, "env") }, agentPod + ",foo",
			labels{"foo": "", agentPod: "agent-0"}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			mc := desiredMember(registered, "edge", CountSelfAssigned)
			cluster := registered.DeepCopy()
			tc.change(cluster)
			shareMetadata(mc, cluster, CountSelfAssigned)
			if diff := cmp.Diff(tc.counted, mc.Labels); diff != "" {
				t.Errorf("labels, counted (-want +got):\n%s", diff)
			}
			if got := mc.Annotations[AnnotationSelfAssignedLabels]; got != tc.selfAssigned {
				t.Errorf("marked: got %q, want %q", got, tc.selfAssigned)
			}
			mc.Labels["zone"] = "a" // An administrator sets it on the MemberCluster itself.
			shareMetadata(mc, cluster, IgnoreSelfAssigned)
			delete(mc.Labels, "zone")
			if diff := cmp.Diff(tc.ignored, mc.Labels, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("labels, ignored (-want +got):\n%s", diff)
			}
			if got := mc.Annotations[AnnotationSelfAssignedLabels]; got != tc.selfAssigned {
				t.Errorf("marked, ignored: got %q, want %q", got, tc.selfAssigned)
			}
		})
	}
}
