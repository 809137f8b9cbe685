// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
