// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"strings"
	"time"

	k8sadmissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	msav1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// BypassGroup, BypassResource and BypassVerb name the right that exempts from
// the policies on member namespaces. It is checked by the API server's own
// authorizer, so nobody can claim it by a name or a label: the gateway's role
// holds it, and so does whoever may do everything.
const (
	BypassGroup    = "admission.fleetgate.io"
	BypassResource = "memberpolicies"
	BypassVerb     = "bypass"
)

// MemberPolicies returns the ValidatingAdmissionPolicies, with their bindings,
// that bound what a member's identity writes into its namespace where RBAC has
// no words for it. They fail closed, and hold while the gateway is down. They go
// by the name of the namespace, not by its labels, which could be taken off.
//
//   - Tokens: an account that may request tokens for itself could mint one that
//     outlives every revocation. Lifetime is at most tokenLifetime, and the
//     token is bound to the Secret whose deletion revokes it. Its audience is not
//     looked at: the API server fills in its own before policies see the request,
//     and nothing tells those from others.
//   - Secrets: a Secret of another type can make the hub's controllers fill in a
//     token. Members write Opaque ones of a ManagedServiceAccount only. Owners
//     and finalizers may change on any: the garbage collector does that.
func MemberPolicies(tokenLifetime time.Duration) []client.Object {
	return append(tokenPolicy(tokenLifetime).objects(), secretPolicy().objects()...)
}

func tokenPolicy(lifetime time.Duration) memberPolicy {
	return memberPolicy{
		name:       "fleetgate-member-token-requests",
		resource:   "serviceaccounts/token",
		operations: []k8sadmissionv1.OperationType{k8sadmissionv1.Create},
		rules: []k8sadmissionv1.Validation{
			{
				Expression: fmt.Sprintf("request.name == '%s'", clusterv1beta1.AgentAccount),
				Message:    fmt.Sprintf("a member requests tokens of its account %q only", clusterv1beta1.AgentAccount),
			},
			{
				Expression: fmt.Sprintf("has(object.spec.expirationSeconds) && object.spec.expirationSeconds <= %d", int64(lifetime.Seconds())),
				Message:    fmt.Sprintf("a token of a member's account lives at most %s", lifetime),
			},
			{
				// The API server has the field in every request, empty if nobody set it.
				Expression: fmt.Sprintf("has(object.spec.boundObjectRef) && has(object.spec.boundObjectRef.kind) && has(object.spec.boundObjectRef.name) && "+
					"object.spec.boundObjectRef.kind == 'Secret' && object.spec.boundObjectRef.name == '%s'", clusterv1beta1.AgentCredentialSecret),
				Message: fmt.Sprintf("a token of a member's account is bound to Secret %q, so that deleting that Secret revokes it", clusterv1beta1.AgentCredentialSecret),
			},
		},
	}
}

func secretPolicy() memberPolicy {
	same := func(field string) string {
		return fmt.Sprintf("(has(object.%[1]s) == has(oldObject.%[1]s) && (!has(object.%[1]s) || object.%[1]s == oldObject.%[1]s))", field)
	}
	unchanged := strings.Join([]string{same("data"), same("metadata.labels"), same("metadata.annotations")}, " && ")
	return memberPolicy{
		name:       "fleetgate-member-secrets",
		resource:   "secrets",
		operations: []k8sadmissionv1.OperationType{k8sadmissionv1.Create, k8sadmissionv1.Update},
		conditions: []k8sadmissionv1.MatchCondition{{
			Name:       "changes-what-is-bounded",
			Expression: "oldObject == null || !(" + unchanged + ")",
		}},
		rules: []k8sadmissionv1.Validation{
			{
				Expression: "object.type == 'Opaque'",
				Message:    "a member writes Secrets of type Opaque only",
			},
			{
				Expression: fmt.Sprintf("has(object.metadata.labels) && object.metadata.labels[?'%s'].orValue('') == '%s'",
					msav1beta1.LabelManagedServiceAccount, msav1beta1.LabelManagedServiceAccountValue),
				Message: fmt.Sprintf("a member writes Secrets of its ManagedServiceAccounts only, labelled %s=%s",
					msav1beta1.LabelManagedServiceAccount, msav1beta1.LabelManagedServiceAccountValue),
			},
			{
				Expression: fmt.Sprintf("has(object.data) && object.data.size() == 2 && '%s' in object.data && '%s' in object.data", msav1beta1.SecretKeyCA, msav1beta1.SecretKeyToken),
				Message:    fmt.Sprintf("the Secret of a ManagedServiceAccount has exactly the keys %s and %s", msav1beta1.SecretKeyCA, msav1beta1.SecretKeyToken),
			},
			{
				// data holds base64: four characters for three bytes, each of two values filled up.
				Expression: fmt.Sprintf("!has(object.data) || object.data.map(k, size(object.data[k])).sum() <= %d", (msav1beta1.MaxSecretBytes+4)/3*4),
				Message:    fmt.Sprintf("a Secret written by a member holds at most %d bytes", msav1beta1.MaxSecretBytes),
			},
			{
				Expression: "!has(object.metadata.annotations) || !object.metadata.annotations.exists(k, k.startsWith('kubernetes.io/service-account'))",
				Message:    "a Secret written by a member carries no kubernetes.io/service-account annotation",
			},
		},
	}
}

// memberPolicy is one policy on one core resource in members' namespaces.
type memberPolicy struct {
	name       string
	resource   string
	operations []k8sadmissionv1.OperationType
	// conditions narrow down, beside namespace and exemption, what is looked at.
	conditions []k8sadmissionv1.MatchCondition
	rules      []k8sadmissionv1.Validation
}

func (p memberPolicy) objects() []client.Object {
	return []client.Object{
		&k8sadmissionv1.ValidatingAdmissionPolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: k8sadmissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
			ObjectMeta: metav1.ObjectMeta{Name: p.name},
			Spec: k8sadmissionv1.ValidatingAdmissionPolicySpec{
				FailurePolicy: ptr.To(k8sadmissionv1.Fail),
				MatchConstraints: &k8sadmissionv1.MatchResources{
					ResourceRules: []k8sadmissionv1.NamedRuleWithOperations{{
						RuleWithOperations: k8sadmissionv1.RuleWithOperations{
							Operations: p.operations,
							Rule:       k8sadmissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{p.resource}},
						},
					}},
				},
				MatchConditions: p.matchConditions(),
				Validations:     p.rules,
			},
		},
		&k8sadmissionv1.ValidatingAdmissionPolicyBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: k8sadmissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicyBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: p.name},
			Spec: k8sadmissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName:        p.name,
				ValidationActions: []k8sadmissionv1.ValidationAction{k8sadmissionv1.Deny},
			},
		},
	}
}

// matchConditions say first what costs least: the policy sees every such write on the hub.
func (p memberPolicy) matchConditions() []k8sadmissionv1.MatchCondition {
	conditions := append([]k8sadmissionv1.MatchCondition{{
		Name:       "member-namespace",
		Expression: fmt.Sprintf("request.namespace.startsWith('%s')", clusterv1beta1.MemberNamespacePrefix),
	}}, p.conditions...)
	return append(conditions, k8sadmissionv1.MatchCondition{
		Name:       "not-exempt",
		Expression: fmt.Sprintf("!authorizer.group('%s').resource('%s').check('%s').allowed()", BypassGroup, BypassResource, BypassVerb),
	})
}
