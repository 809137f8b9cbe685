// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// usesTokens reports whether the agent of an add-on gets tokens.
func usesTokens(addOn *addonv1alpha1.ManagedClusterAddOn) bool {
	return addOn.Status.KubeClientDriver == addonv1alpha1.DriverToken &&
		slices.ContainsFunc(addOn.Status.Registrations, func(of addonv1alpha1.RegistrationConfig) bool {
			return of.SignerName == certificatesv1.KubeAPIServerClientSignerName
		})
}

// objectsFor are the account, Role and RoleBinding of an add-on, in the order of their creation.
func objectsFor(addOn types.NamespacedName, agents []rbacv1.Subject) []client.Object {
	named := func(suffix string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: addOn.Namespace, Name: addOn.Name + suffix, Labels: map[string]string{
			addonv1alpha1.TokenInfrastructureLabel: "true", addonv1alpha1.TokenAddOnLabel: addOn.Name,
		}}
	}
	account, role := named(addonv1alpha1.TokenAccountSuffix), named(addonv1alpha1.TokenRoleSuffix)
	return []client.Object{
		&corev1.ServiceAccount{ObjectMeta: account},
		&rbacv1.Role{ObjectMeta: role, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{account.Name}, Verbs: []string{"create"}},
		}},
		&rbacv1.RoleBinding{ObjectMeta: role, Subjects: agents, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}},
	}
}

// addOnOf is the add-on of an object with our labels.
func addOnOf(object client.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetLabels()[addonv1alpha1.TokenAddOnLabel]}
}

// isOurs reports whether an object was created for the add-on.
func isOurs(object client.Object, addOn types.NamespacedName) bool {
	return object.GetLabels()[addonv1alpha1.TokenInfrastructureLabel] == "true" && addOnOf(object) == addOn
}

// taken refuses the name of an object that was not created for the add-on.
func taken(object client.Object) error {
	return refusal.New(addonv1alpha1.ReasonTokenInfrastructureApplyFailed,
		"%s was not created for this add-on: delete it, or use another name for the add-on", nameOf(object))
}

// nameOf is the kind and name of an object, for messages.
func nameOf(object client.Object) string {
	kind := "ServiceAccount"
	switch object.(type) {
	case *rbacv1.Role:
		kind = "Role"
	case *rbacv1.RoleBinding:
		kind = "RoleBinding"
	}
	return kind + " " + client.ObjectKeyFromObject(object).String()
}

// refersElsewhere reports whether a RoleBinding binds another Role, which cannot be changed.
func refersElsewhere(existing, desired client.Object) bool {
	binding, is := existing.(*rbacv1.RoleBinding)
	return is && !equality.Semantic.DeepEqual(binding.RoleRef, desired.(*rbacv1.RoleBinding).RoleRef)
}

// revert gives an existing object the desired content.
func revert(existing, desired client.Object) {
	switch existing := existing.(type) {
	case *rbacv1.Role:
		existing.Rules = desired.(*rbacv1.Role).Rules
	case *rbacv1.RoleBinding:
		existing.Subjects = desired.(*rbacv1.RoleBinding).Subjects
	}
}

// ready is the condition with the account's UID. Agents parse the message.
func ready(account client.Object) metav1.Condition {
	return metav1.Condition{
		Type: addonv1alpha1.ConditionTokenInfrastructureReady, Status: metav1.ConditionTrue, Reason: addonv1alpha1.ReasonTokenInfrastructureReady,
		Message: fmt.Sprintf("ServiceAccount %s/%s (UID: %s) is ready", account.GetNamespace(), account.GetName(), account.GetUID()),
	}
}

func failed(why string) metav1.Condition {
	return metav1.Condition{
		Type: addonv1alpha1.ConditionTokenInfrastructureReady, Status: metav1.ConditionFalse, Reason: addonv1alpha1.ReasonTokenInfrastructureApplyFailed, Message: why,
	}
}
