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

func TestApproval(t *testing.T) {
	tests := map[string]struct {
		annotation string
		ttl        time.Duration
		defaults   Defaults
		want       bool
	}{
		"a token that ends approves":                   {"", time.Hour, Defaults{}, true},
		"a token without end does not":                 {"", 0, Defaults{}, false},
		"a token without end does if the gateway says": {"", 0, Defaults{ApproveInfinite: true}, true},
		"a token without end that says auto":           {"auto", 0, Defaults{}, true},
		"a token that ends and says manual":            {"manual", time.Hour, Defaults{ApproveInfinite: true}, false},
		"what nobody knows is manual":                  {"always", time.Hour, Defaults{ApproveInfinite: true}, false},
		"a strict gateway's token that ends does not":  {"", time.Hour, Defaults{Strict: true}, false},
		"a strict gateway's token that says auto":      {"auto", time.Hour, Defaults{Strict: true}, true},
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

func TestLabelsThatAnAgentMayBring(t *testing.T) {
	brought := map[string]string{
		"env": "prod", "example": "true", "region": "eu", "acme.com/tier": "gold", "acme.com/team": "a",
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
		"those of the examples unless the token says": {nil, Defaults{}, with(map[string]string{"env": "prod", "example": "true"})},
		"none":                         {allowing(""), Defaults{}, pod},
		"the listed ones, with blanks": {allowing("region, acme.com/tier"), Defaults{}, with(map[string]string{"region": "eu", "acme.com/tier": "gold"})},
		"all of a domain":              {allowing("acme.com/*"), Defaults{}, with(map[string]string{"acme.com/tier": "gold", "acme.com/team": "a"})},
		"reserved ones never, even if the token says so": {allowing("fleetgate.io/*,fleet.cattle.io/cluster"), Defaults{}, pod},
		"none at a strict gateway":                       {nil, Defaults{Strict: true}, pod},
		"the listed ones at a strict gateway":            {allowing("region"), Defaults{Strict: true}, with(map[string]string{"region": "eu"})},
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

func TestAProofFitsOneRequestAndOneToken(t *testing.T) {
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
		"as it was made":       {"token: token", func(*registrationv1alpha1.ClusterRegistration) {}, true},
		"another token":        {"token: other", func(*registrationv1alpha1.ClusterRegistration) {}, false},
		"no token":             {"token: ''", func(*registrationv1alpha1.ClusterRegistration) {}, false},
		"unreadable values":    {"{", func(*registrationv1alpha1.ClusterRegistration) {}, false},
		"another namespace":    {"token: token", func(r *registrationv1alpha1.ClusterRegistration) { r.Namespace = "other" }, false},
		"another key's name":   {"token: token", func(r *registrationv1alpha1.ClusterRegistration) { r.Name = "request-x" }, false},
		"another client ID":    {"token: token", func(r *registrationv1alpha1.ClusterRegistration) { r.Spec.ClientID = "x" }, false},
		"other labels":         {"token: token", func(r *registrationv1alpha1.ClusterRegistration) { r.Spec.ClusterLabels = nil }, false},
		"a proof that was cut": {"token: token", func(r *registrationv1alpha1.ClusterRegistration) { r.Spec.TokenProof = proof[:31] }, false},
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

func TestAMemberFollowsTheLabelsOfItsCluster(t *testing.T) {
	cluster := &registrationv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: "clusters", Name: "edge", UID: "uid", Labels: map[string]string{"env": "prod", "tier": "1", "fleet.cattle.io/cluster": "edge"},
		Annotations: map[string]string{registrationv1alpha1.AnnotationApproval: registrationv1alpha1.ApprovalManual},
	}}
	mc := desiredMember(cluster, "edge", CountSelfAssigned)
	if mc.IsApproved() {
		t.Error("a member that waits for approval is not tainted")
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
		t.Error("it does not know its infrastructure")
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
		t.Error("it still remembers labels")
	}
	if !isOrigin(mc, cluster) {
		t.Error("it forgot its origin")
	}
}

func TestLabelsThatAnAgentChoseForItself(t *testing.T) {
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
		"are marked": {func(*registrationv1alpha1.Cluster) {}, "env," + agentPod + ",foo",
			labels{"env": "prod", "foo": "", agentPod: "agent-0"}, nil},
		"are an administrator's once one has changed them": {func(c *registrationv1alpha1.Cluster) { c.Labels["env"] = "dev" }, agentPod + ",foo",
			labels{"env": "dev", "foo": "", agentPod: "agent-0"}, labels{"env": "dev"}},
		"are an administrator's once one has vouched for them": {func(c *registrationv1alpha1.Cluster) { delete(c.Annotations, AnnotationBroughtLabels) }, "",
			labels{"env": "prod", "foo": "", agentPod: "agent-0"}, labels{"env": "prod", "foo": "", agentPod: "agent-0"}},
		"are gone when they are gone from the Cluster": {func(c *registrationv1alpha1.Cluster) { delete(c.Labels, "env") }, agentPod + ",foo",
			labels{"foo": "", agentPod: "agent-0"}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			mc := desiredMember(registered, "edge", CountSelfAssigned)
			cluster := registered.DeepCopy()
			tc.change(cluster)
			shareMetadata(mc, cluster, CountSelfAssigned)
			if diff := cmp.Diff(tc.counted, mc.Labels); diff != "" {
				t.Errorf("labels that count (-want +got):\n%s", diff)
			}
			if got := mc.Annotations[AnnotationSelfAssignedLabels]; got != tc.selfAssigned {
				t.Errorf("marked: got %q, want %q", got, tc.selfAssigned)
			}
			mc.Labels["zone"] = "a" // by an administrator, on the MemberCluster itself
			shareMetadata(mc, cluster, IgnoreSelfAssigned)
			delete(mc.Labels, "zone")
			if diff := cmp.Diff(tc.ignored, mc.Labels, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("labels where those do not count (-want +got):\n%s", diff)
			}
			if got := mc.Annotations[AnnotationSelfAssignedLabels]; got != tc.selfAssigned {
				t.Errorf("marked where they do not count: got %q, want %q", got, tc.selfAssigned)
			}
		})
	}
}

func TestNamespacesWhereClustersRegister(t *testing.T) {
	tests := map[string]struct {
		allowed []string
		refused bool
	}{
		"everywhere if none is given": {nil, false},
		"one of the given ones":       {[]string{"other", "clusters"}, false},
		"another one":                 {[]string{"other"}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if refused := refuseNamespace(tc.allowed, "clusters"); (refused != nil) != tc.refused {
				t.Errorf("got %v, want refused: %v", refused, tc.refused)
			}
		})
	}
}
