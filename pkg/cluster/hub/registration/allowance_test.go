// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
)

func TestAllowanceOf_Approval(t *testing.T) {
	tests := map[string]struct {
		annotation string
		ttl        time.Duration
		defaults   Defaults
		want       bool
	}{
		"token with an expiry":                     {"", time.Hour, Defaults{}, true},
		"token without an expiry":                  {"", 0, Defaults{}, false},
		"token without an expiry, ApproveInfinite": {"", 0, Defaults{ApproveInfinite: true}, true},
		"token without an expiry, approval auto":   {"auto", 0, Defaults{}, true},
		"token with an expiry, approval manual":    {"manual", time.Hour, Defaults{ApproveInfinite: true}, false},
		"unknown approval is manual":               {"always", time.Hour, Defaults{ApproveInfinite: true}, false},
		"strict: token with an expiry":             {"", time.Hour, Defaults{Strict: true}, false},
		"strict: approval auto":                    {"auto", time.Hour, Defaults{Strict: true}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			token := &registrationv1alpha1.ClusterRegistrationToken{}
			token.Spec.TTL = &metav1.Duration{Duration: tc.ttl}
			if tc.annotation != "" {
				token.Annotations = map[string]string{registrationv1alpha1.AnnotationApproval: tc.annotation}
			}
			allowed, refused := allowanceOf(token, tc.defaults)
			if got := allowed.approved; refused != nil || got != tc.want {
				t.Errorf("approved: got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestLabelsOf_AllowedLabels(t *testing.T) {
	brought := map[string]string{
		"env": "prod", "example": "true", "region": "eu", "acme.com/tier": "gold", "acme.com/team": "a",
		"topology.kubernetes.io/region": "eu", "fleet.azure.com/location": "eu",
		"fleetgate.io/unapproved": "no", "fleet.cattle.io/cluster": "other", "fleet.cattle.io/created-by-agent-pod": "agent-0",
	}
	pod := map[string]string{"fleet.cattle.io/created-by-agent-pod": "agent-0"}
	with := func(more map[string]string) map[string]string {
		for key, value := range pod {
			more[key] = value
		}
		return more
	}
	tests := map[string]struct {
		annotations map[string]string
		defaults    Defaults
		want        map[string]string
	}{
		"default: all that nobody reserves": {nil, Defaults{}, with(map[string]string{"env": "prod", "example": "true", "region": "eu", "acme.com/tier": "gold", "acme.com/team": "a", "fleet.azure.com/location": "eu"})},
		"listed label of Kubernetes":        {allowing("topology.kubernetes.io/region"), Defaults{}, with(map[string]string{"topology.kubernetes.io/region": "eu"})},
		"none":                              {allowing(""), Defaults{}, pod},
		"listed labels with blanks":         {allowing("region, acme.com/tier"), Defaults{}, with(map[string]string{"region": "eu", "acme.com/tier": "gold"})},
		"wildcard":                          {allowing("acme.com/*"), Defaults{}, with(map[string]string{"acme.com/tier": "gold", "acme.com/team": "a"})},
		"reserved labels are never allowed": {allowing("fleetgate.io/*,fleet.cattle.io/cluster"), Defaults{}, pod},
		"strict: none":                      {nil, Defaults{Strict: true}, pod},
		"strict: listed labels":             {allowing("region"), Defaults{Strict: true}, with(map[string]string{"region": "eu"})},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			token := &registrationv1alpha1.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}
			request := &registrationv1alpha1.ClusterRegistration{}
			request.Spec.ClusterLabels = brought
			allowed, refused := allowanceOf(token, tc.defaults)
			if diff := cmp.Diff(tc.want, allowed.labelsOf(request)); diff != "" || refused != nil {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}

func allowing(labels string) map[string]string {
	return map[string]string{registrationv1alpha1.AnnotationAllowedLabels: labels}
}

func TestIsProven(t *testing.T) {
	request := requestOf(t, func(r *registrationv1alpha1.ClusterRegistration) {
		r.Spec.ClusterLabels = map[string]string{"env": "prod"}
	})
	proof, err := registrationv1alpha1.TokenProof("token", request)
	if err != nil {
		t.Fatal(err)
	}
	request.Spec.TokenProof = proof
	secret := func(values string) *corev1.Secret {
		return &corev1.Secret{Data: map[string][]byte{registrationv1alpha1.RegistrationValuesKey: []byte(values)}}
	}
	tests := map[string]struct {
		values string
		change func(*registrationv1alpha1.ClusterRegistration)
		want   bool
	}{
		"unchanged":           {"token: token", func(*registrationv1alpha1.ClusterRegistration) {}, true},
		"other token":         {"token: other", func(*registrationv1alpha1.ClusterRegistration) {}, false},
		"no token":            {"token: ''", func(*registrationv1alpha1.ClusterRegistration) {}, false},
		"unreadable values":   {"{", func(*registrationv1alpha1.ClusterRegistration) {}, false},
		"other namespace":     {"token: token", func(r *registrationv1alpha1.ClusterRegistration) { r.Namespace = "other" }, false},
		"name of another key": {"token: token", func(r *registrationv1alpha1.ClusterRegistration) { r.Name = "request-x" }, false},
		"other client ID":     {"token: token", func(r *registrationv1alpha1.ClusterRegistration) { r.Spec.ClientID = "x" }, false},
		"other labels":        {"token: token", func(r *registrationv1alpha1.ClusterRegistration) { r.Spec.ClusterLabels = nil }, false},
		"truncated proof":     {"token: token", func(r *registrationv1alpha1.ClusterRegistration) { r.Spec.TokenProof = proof[:31] }, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			changed := request.DeepCopy()
			tc.change(changed)
			if got := isProven(secret(tc.values), changed); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
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
	registered := desiredCluster(request, allowance{approved: true, labels: []string{"env", "foo"}})
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

func TestRefuseNamespace_AllowedNamespaces(t *testing.T) {
	tests := map[string]struct {
		allowed []string
		refused bool
	}{
		"no restriction":    {nil, false},
		"allowed namespace": {[]string{"other", "clusters"}, false},
		"other namespace":   {[]string{"other"}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if refused := refuseNamespace(tc.allowed, "clusters"); (refused != nil) != tc.refused {
				t.Errorf("got %v, want refused: %v", refused, tc.refused)
			}
		})
	}
}
