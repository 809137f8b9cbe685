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

// permissiveSettings lists checks that are disabled or allow more than necessary. It derives them
// from objects on the hub: the flags of the gateway are not visible to the user.
func (r *Reporter) permissiveSettings(ctx context.Context) (section, error) {
	s := section{title: "Permissive settings", head: []string{"SETTING", "RISK"}}
	for _, check := range []func(context.Context, *section) error{r.guardRails, r.permissiveTokens} {
		if err := check(ctx, &s); err != nil {
			return s, err
		}
	}
	return s, nil
}

// guardRails adds a row unless the policies of one of the modes are installed.
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
		"guard rails", "off: placed workloads can also run on the hub; start the gateway with --install and install.guardRails: selected or reference",
	}})
	return nil
}

// permissiveTokens lists tokens that approve clusters without review.
func (r *Reporter) permissiveTokens(ctx context.Context, s *section) error {
	var tokens registrationv1alpha1.ClusterRegistrationTokenList
	note, err := r.list(ctx, &tokens)
	if err != nil {
		return err
	}
	s.note = note
	implicit := 0
	for i := range tokens.Items {
		token := &tokens.Items[i]
		restricted := meta.FindStatusCondition(token.Status.Conditions, registrationv1alpha1.TokenConditionRestricted)
		if restricted == nil || restricted.Status != metav1.ConditionFalse {
			continue
		}
		if _, explicit := token.Annotations[registrationv1alpha1.AnnotationApproval]; !explicit {
			implicit++
		}
		s.rows = append(s.rows, row{rank: healthy, cells: []string{"registration token " + token.Namespace + "/" + token.Name, restricted.Message}})
	}
	if implicit > 0 {
		s.rows = append(s.rows, row{cells: []string{
			"registration policy", fmt.Sprintf("open: %d tokens without annotation %s approve clusters automatically; start the gateway with --registration-policy=strict", implicit, registrationv1alpha1.AnnotationApproval),
		}})
	}
	return nil
}
