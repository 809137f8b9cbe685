// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"fmt"

	k8sadmissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	msav1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// PolicyName names the ValidatingAdmissionPolicy and its binding.
const PolicyName = "fleetgate-agent-secrets"

// Policies returns the ValidatingAdmissionPolicy, with its binding, that bounds
// which Secrets the account of a member's agent writes, whatever roles it was
// given: those of ManagedServiceAccounts in its own member's namespace. Nobody is
// exempt, and it fails closed. A Secret whose ManagedServiceAccount does not exist
// is collected by the hub, so an agent cannot make up names.
func Policies() []client.Object {
	const ofAgent = "request.userInfo.username.startsWith('system:serviceaccount:%s')"
	const owned = "has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, " +
		"o.kind == 'ManagedServiceAccount' && o.apiVersion.startsWith('%s/') && o.name == object.metadata.name)"
	return []client.Object{
		&k8sadmissionv1.ValidatingAdmissionPolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: k8sadmissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
			ObjectMeta: metav1.ObjectMeta{Name: PolicyName},
			Spec: k8sadmissionv1.ValidatingAdmissionPolicySpec{
				FailurePolicy: ptr.To(k8sadmissionv1.Fail),
				MatchConstraints: &k8sadmissionv1.MatchResources{
					ResourceRules: []k8sadmissionv1.NamedRuleWithOperations{{
						RuleWithOperations: k8sadmissionv1.RuleWithOperations{
							Operations: []k8sadmissionv1.OperationType{k8sadmissionv1.Create, k8sadmissionv1.Update},
							Rule:       k8sadmissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}},
						},
					}},
				},
				MatchConditions: []k8sadmissionv1.MatchCondition{{
					Name: "agent-of-a-member", Expression: fmt.Sprintf(ofAgent, clusterv1beta1.MemberNamespacePrefix),
				}},
				Validations: []k8sadmissionv1.Validation{
					{
						Expression: "request.namespace == request.userInfo.username.split(':')[2]",
						Message:    "a member's agent writes Secrets in its own member's namespace only",
					},
					{
						Expression: fmt.Sprintf(owned, msav1beta1.GroupVersion.Group),
						Message:    "a member's agent writes Secrets of ManagedServiceAccounts only, owned by the one of the same name",
					},
				},
			},
		},
		&k8sadmissionv1.ValidatingAdmissionPolicyBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: k8sadmissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicyBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: PolicyName},
			Spec: k8sadmissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName:        PolicyName,
				ValidationActions: []k8sadmissionv1.ValidationAction{k8sadmissionv1.Deny},
			},
		},
	}
}
