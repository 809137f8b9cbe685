// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
)

func TestWebhooks_FailurePolicyAndConditions(t *testing.T) {
	tests := map[string]struct {
		spec    admissionv1alpha1.ImmutabilityPolicySpec
		allowed []string
		// want is the failure policy of each webhook and the last of its conditions.
		want map[string][2]string
	}{
		"fails open by itself": {admissionv1alpha1.ImmutabilityPolicySpec{}, []string{"example.org"},
			map[string][2]string{"p.policies.admission.fleetgate.io": {"Ignore", "not-of-the-hub-itself"}}},
		"fails open unless an administrator allows more": {admissionv1alpha1.ImmutabilityPolicySpec{FailurePolicy: "Fail"}, nil,
			map[string][2]string{"p.policies.admission.fleetgate.io": {"Ignore", "not-of-the-hub-itself"}}},
		"fails closed, but for who may pass it and leaves a note of that": {admissionv1alpha1.ImmutabilityPolicySpec{FailurePolicy: "Fail"}, []string{"example.org"},
			map[string][2]string{"p.policies.admission.fleetgate.io": {"Fail", "no-bypass"}, "p.bypassed-policies.admission.fleetgate.io": {"Ignore", "bypass"}}},
		"fails open while it only warns": {admissionv1alpha1.ImmutabilityPolicySpec{FailurePolicy: "Fail", Enforcement: "Warn"}, []string{"example.org"},
			map[string][2]string{"p.policies.admission.fleetgate.io": {"Ignore", "not-of-the-hub-itself"}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			served := []*Compiled{compile(t, newCompiler(t), policyOf(tt.spec))}
			got := map[string][2]string{}
			for _, webhook := range webhooks(served, admissionregistrationv1.WebhookClientConfig{}, sets.New(tt.allowed...), "fleet-system") {
				last := webhook.MatchConditions[len(webhook.MatchConditions)-1].Name
				got[webhook.Name] = [2]string{string(*webhook.FailurePolicy), last}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("webhooks differ (-want +got):\n%s", diff)
			}
		})
	}
}
