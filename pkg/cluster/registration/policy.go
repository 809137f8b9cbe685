// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"

	k8sadmissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
)

// originPolicy is the name of the policy that keeps origins as they are.
const originPolicy = "fleetgate-membercluster-origin"

// OriginPolicy returns the ValidatingAdmissionPolicy, with its binding, that keeps a
// MemberCluster's origin as it was first written: the Cluster for which it was made gets
// its credentials, so whoever could change that would give the member to another.
// Nobody is exempt, and it holds while the gateway is down.
func OriginPolicy() []client.Object {
	var rules []k8sadmissionv1.Validation
	for _, name := range []string{
		AnnotationClusterUID, registrationv1alpha1.AnnotationCluster, registrationv1alpha1.AnnotationClusterNamespace,
	} {
		rules = append(rules, k8sadmissionv1.Validation{
			Expression: fmt.Sprintf("!has(oldObject.metadata.annotations) || !('%[1]s' in oldObject.metadata.annotations) || "+
				"has(object.metadata.annotations) && object.metadata.annotations[?'%[1]s'].orValue('') == oldObject.metadata.annotations['%[1]s']", name),
			Message: fmt.Sprintf("annotation %s is immutable: it says for which Cluster this MemberCluster was made; delete the MemberCluster instead", name),
		})
	}
	meta := metav1.ObjectMeta{Name: originPolicy}
	return []client.Object{
		&k8sadmissionv1.ValidatingAdmissionPolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: k8sadmissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
			ObjectMeta: meta,
			Spec: k8sadmissionv1.ValidatingAdmissionPolicySpec{
				FailurePolicy: ptr.To(k8sadmissionv1.Fail),
				MatchConstraints: &k8sadmissionv1.MatchResources{ResourceRules: []k8sadmissionv1.NamedRuleWithOperations{{
					RuleWithOperations: k8sadmissionv1.RuleWithOperations{
						Operations: []k8sadmissionv1.OperationType{k8sadmissionv1.Update},
						Rule: k8sadmissionv1.Rule{
							APIGroups: []string{clusterv1beta1.GroupName}, APIVersions: []string{"*"}, Resources: []string{"memberclusters"},
						},
					},
				}}},
				Validations: rules,
			},
		},
		&k8sadmissionv1.ValidatingAdmissionPolicyBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: k8sadmissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicyBinding"},
			ObjectMeta: meta,
			Spec: k8sadmissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName:        originPolicy,
				ValidationActions: []k8sadmissionv1.ValidationAction{k8sadmissionv1.Deny},
			},
		},
	}
}
