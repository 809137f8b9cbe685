// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
)

func TestApproval(t *testing.T) {
	tests := map[string]struct {
		annotation      string
		ttl             time.Duration
		approveInfinite bool
		want            bool
	}{
		"a token that ends approves":                   {"", time.Hour, false, true},
		"a token without end does not":                 {"", 0, false, false},
		"a token without end does if the gateway says": {"", 0, true, true},
		"a token without end that says auto":           {"auto", 0, false, true},
		"a token that ends and says manual":            {"manual", time.Hour, true, false},
		"what nobody knows is manual":                  {"always", time.Hour, true, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			token := &registrationv1alpha1.ClusterRegistrationToken{}
			token.Spec.TTL = &metav1.Duration{Duration: tc.ttl}
			if tc.annotation != "" {
				token.Annotations = map[string]string{registrationv1alpha1.AnnotationApproval: tc.annotation}
			}
			if got := termsOf(token, tc.approveInfinite).approved; got != tc.want {
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
		want        map[string]string
	}{
		"those of the examples unless the token says": {nil, with(map[string]string{"env": "prod", "example": "true"})},
		"none":                         {map[string]string{registrationv1alpha1.AnnotationAllowedLabels: ""}, pod},
		"the listed ones, with blanks": {map[string]string{registrationv1alpha1.AnnotationAllowedLabels: "region, acme.com/tier"}, with(map[string]string{"region": "eu", "acme.com/tier": "gold"})},
		"all of a domain":              {map[string]string{registrationv1alpha1.AnnotationAllowedLabels: "acme.com/*"}, with(map[string]string{"acme.com/tier": "gold", "acme.com/team": "a"})},
		"reserved ones never, even if the token says so": {map[string]string{registrationv1alpha1.AnnotationAllowedLabels: "fleetgate.io/*,fleet.cattle.io/cluster"}, pod},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			token := &registrationv1alpha1.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}
			request := &registrationv1alpha1.ClusterRegistration{}
			request.Spec.ClusterLabels = brought
			if diff := cmp.Diff(tc.want, termsOf(token, false).labelsOf(request)); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
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
	mc := desiredMember(cluster, "edge")
	if mc.IsApproved() {
		t.Error("a member that waits for approval is not tainted")
	}
	mc.Labels[clusterv1beta1.LabelMemberName], mc.Labels["zone"] = "edge", "a"

	cluster.Labels = map[string]string{"env": "dev", clusterv1beta1.InfrastructurePrefix + "spot": "true"}
	cluster.Annotations[clusterv1beta1.AnnotationProperties] = "{}"
	shareMetadata(mc, cluster)
	want := map[string]string{"env": "dev", "zone": "a", clusterv1beta1.LabelMemberName: "edge", clusterv1beta1.InfrastructurePrefix + "spot": "true"}
	if diff := cmp.Diff(want, mc.Labels); diff != "" {
		t.Errorf("labels after a change (-want +got):\n%s", diff)
	}

	if mc.Annotations[clusterv1beta1.AnnotationProperties] != "{}" {
		t.Error("it does not know its infrastructure")
	}

	cluster.Labels = nil
	delete(cluster.Annotations, clusterv1beta1.AnnotationProperties)
	shareMetadata(mc, cluster)
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
