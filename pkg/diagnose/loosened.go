// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/install"
	"fleetgate.io/fleetgate/pkg/webhook/policies"
)

// loosened are checks that somebody has left off, or that let more in than they could. It
// goes by what is on the hub, whoever runs the gateway with which flags.
func (r *Reporter) loosened(ctx context.Context) (section, error) {
	s := section{title: "Rules that are loose", head: []string{"RULE", "WHAT IT LEAVES OPEN"}}
	for _, rule := range []func(context.Context, *section) error{r.guardRails, r.permissiveTokens} {
		if err := rule(ctx, &s); err != nil {
			return s, err
		}
	}
	return s, nil
}

// guardRails are on where the policies of any mode are.
func (r *Reporter) guardRails(ctx context.Context, s *section) error {
	var installed admissionregistrationv1.ValidatingAdmissionPolicyList
	if _, err := r.list(ctx, &installed, client.MatchingLabels{install.LabelManagedBy: install.ManagedBy}); err != nil {
		return err
	}
	found := map[string]bool{}
	for i := range installed.Items {
		found[installed.Items[i].Name] = true
	}
	for _, mode := range policies.AllGuardRails() {
		for _, policy := range mode.Of(policies.Parameters{}) {
			if found[policy.GetName()] {
				return nil
			}
		}
	}
	s.rows = append(s.rows, row{cells: []string{
		"guard rails", "off: what is placed can run on the hub too; start the gateway with --install and --guard-rails=selected or reference",
	}})
	return nil
}

// permissiveTokens are those that let clusters in at once, which nobody has looked at.
func (r *Reporter) permissiveTokens(ctx context.Context, s *section) error {
	var tokens registrationv1alpha1.ClusterRegistrationTokenList
	note, err := r.list(ctx, &tokens)
	if err != nil {
		return err
	}
	s.note = note
	open := 0
	for i := range tokens.Items {
		token := &tokens.Items[i]
		restricted := meta.FindStatusCondition(token.Status.Conditions, registrationv1alpha1.TokenConditionRestricted)
		if restricted == nil || restricted.Status != metav1.ConditionFalse {
			continue
		}
		if _, says := token.Annotations[registrationv1alpha1.AnnotationApproval]; !says {
			open++
		}
		s.rows = append(s.rows, row{rank: well, cells: []string{"registration token " + token.Namespace + "/" + token.Name, restricted.Message}})
	}
	if open > 0 {
		s.rows = append(s.rows, row{cells: []string{
			"registration policy", fmt.Sprintf("open: %d tokens approve clusters without saying so; start the gateway with --registration-policy=strict", open),
		}})
	}
	return nil
}
