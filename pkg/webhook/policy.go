// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	k8sadmissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// policy is one ValidatingAdmissionPolicy with its binding, of the same name. It
// fails closed: an expression that breaks refuses, so every one of them asks has()
// before it reads.
type policy struct {
	name string
	// open makes it fail open, for what all of the hub needs.
	open      bool
	resources []k8sadmissionv1.NamedRuleWithOperations
	// conditions say first what costs least: the policy sees every such write.
	conditions []k8sadmissionv1.MatchCondition
	variables  []k8sadmissionv1.Variable
	rules      []k8sadmissionv1.Validation
	audit      []k8sadmissionv1.AuditAnnotation
	// each names a kind; the rules are evaluated once for each object of it, as
	// `params`, and all have to agree. Without any object they are not evaluated.
	each *k8sadmissionv1.ParamKind
}

var (
	creations = []k8sadmissionv1.OperationType{k8sadmissionv1.Create}
	writes    = []k8sadmissionv1.OperationType{k8sadmissionv1.Create, k8sadmissionv1.Update}
	deletions = []k8sadmissionv1.OperationType{k8sadmissionv1.Delete}
	changes   = []k8sadmissionv1.OperationType{k8sadmissionv1.Create, k8sadmissionv1.Update, k8sadmissionv1.Delete}
)

// on returns the rule for operations on resources of a group.
func on(operations []k8sadmissionv1.OperationType, group, version string, resources ...string) k8sadmissionv1.NamedRuleWithOperations {
	return k8sadmissionv1.NamedRuleWithOperations{RuleWithOperations: k8sadmissionv1.RuleWithOperations{
		Operations: operations,
		Rule: k8sadmissionv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{version}, Resources: resources, Scope: ptr.To(k8sadmissionv1.AllScopes),
		},
	}}
}

func (p policy) objects() []client.Object {
	action, params := k8sadmissionv1.Deny, (*k8sadmissionv1.ParamRef)(nil)
	failure := k8sadmissionv1.Fail
	if p.open {
		failure = k8sadmissionv1.Ignore
	}
	if len(p.rules) == 0 {
		action = k8sadmissionv1.Audit
	}
	if p.each != nil {
		params = &k8sadmissionv1.ParamRef{Selector: &metav1.LabelSelector{}, ParameterNotFoundAction: ptr.To(k8sadmissionv1.AllowAction)}
	}
	return []client.Object{
		&k8sadmissionv1.ValidatingAdmissionPolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: k8sadmissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
			ObjectMeta: metav1.ObjectMeta{Name: p.name},
			Spec: k8sadmissionv1.ValidatingAdmissionPolicySpec{
				FailurePolicy:    ptr.To(failure),
				ParamKind:        p.each,
				MatchConstraints: &k8sadmissionv1.MatchResources{ResourceRules: p.resources},
				MatchConditions:  p.conditions,
				Variables:        p.variables,
				Validations:      p.rules,
				AuditAnnotations: p.audit,
			},
		},
		&k8sadmissionv1.ValidatingAdmissionPolicyBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: k8sadmissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicyBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: p.name},
			Spec: k8sadmissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName:        p.name,
				ParamRef:          params,
				ValidationActions: []k8sadmissionv1.ValidationAction{action},
			},
		},
	}
}

// objectsOf returns the objects of all policies.
func objectsOf(policies ...policy) []client.Object {
	var objects []client.Object
	for _, p := range policies {
		objects = append(objects, p.objects()...)
	}
	return objects
}

// forbidden is a rule whose refusal is 403 with one sentence.
func forbidden(expression, message string) k8sadmissionv1.Validation {
	return k8sadmissionv1.Validation{Expression: expression, Message: message, Reason: ptr.To(metav1.StatusReasonForbidden)}
}

// forbiddenSaying is the same with a sentence that the API server puts together.
func forbiddenSaying(expression, message string) k8sadmissionv1.Validation {
	return k8sadmissionv1.Validation{Expression: expression, MessageExpression: message, Reason: ptr.To(metav1.StatusReasonForbidden)}
}
