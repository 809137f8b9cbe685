// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
)

// ErrNotExportable is wrapped by errors of Export for policies that need the gateway.
var ErrNotExportable = errors.New("only the gateway can enforce it")

// ExportName is the name of the exported policy and its binding.
func ExportName(policy string) string { return "fleetgate-" + policy }

// Export translates a policy to a ValidatingAdmissionPolicy and its binding, which the API server
// enforces without the gateway. The expressions are those that the gateway evaluates. The hub's API
// server must support the functions that the policy uses: mode NoDowngrade needs Kubernetes 1.33.
func Export(policy *admissionv1alpha1.ImmutabilityPolicy) (*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding, error) {
	spec := &policy.Spec
	switch {
	case len(spec.Lookups) > 0:
		return nil, nil, fmt.Errorf("policy %s has lookups: %w", policy.Name, ErrNotExportable)
	case len(spec.Guards) > 0:
		return nil, nil, fmt.Errorf("policy %s has guards: %w", policy.Name, ErrNotExportable)
	}
	name := ExportName(policy.Name)
	bypass := admissionregistrationv1.MatchCondition{Name: "no-bypass", Expression: "!" + mayBypass(policy.Name)}
	exported := &admissionregistrationv1.ValidatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    ptr.To(admissionregistrationv1.FailurePolicyType(spec.FailurePolicy)),
			MatchConstraints: constraintsOf(&spec.Match),
			MatchConditions:  append(append([]admissionregistrationv1.MatchCondition{}, spec.Match.MatchConditions...), bypass),
		},
	}
	if spec.FailurePolicy == "" {
		exported.Spec.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
	}
	for _, r := range rulesOf(spec) {
		validation := admissionregistrationv1.Validation{Expression: r.expression, Message: r.path + ": " + r.message}
		if r.messageExpression != "" {
			validation.MessageExpression = fmt.Sprintf("'%s: ' + (%s)", r.path, r.messageExpression)
		}
		exported.Spec.Validations = append(exported.Spec.Validations, validation)
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicyBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: actionsOf(spec.Enforcement)},
	}
	return exported, binding, nil
}

func constraintsOf(match *admissionv1alpha1.PolicyMatch) *admissionregistrationv1.MatchResources {
	constraints := &admissionregistrationv1.MatchResources{
		NamespaceSelector: match.NamespaceSelector,
		ObjectSelector:    match.ObjectSelector,
		MatchPolicy:       ptr.To(admissionregistrationv1.Equivalent),
	}
	for _, rule := range match.ResourceRules {
		constraints.ResourceRules = append(constraints.ResourceRules, admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: rule})
	}
	return constraints
}

func actionsOf(enforcement admissionv1alpha1.Enforcement) []admissionregistrationv1.ValidationAction {
	switch enforcement {
	case admissionv1alpha1.EnforcementWarn:
		return []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn, admissionregistrationv1.Audit}
	case admissionv1alpha1.EnforcementAudit:
		return []admissionregistrationv1.ValidationAction{admissionregistrationv1.Audit}
	}
	return []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}
}
