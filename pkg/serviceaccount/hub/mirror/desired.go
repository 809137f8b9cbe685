// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// desiredMirror returns the mirror that the member's agent serves. It has no TTL: the source is deleted
// instead.
func desiredMirror(account *authenticationv1beta1.ManagedServiceAccount, member string) *authenticationv1beta1.ManagedServiceAccount {
	return &authenticationv1beta1.ManagedServiceAccount{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: clusterv1beta1.MemberNamespace(member),
			Name:      account.Name,
			Labels: map[string]string{
				clusterv1beta1.LabelMember:                     member,
				authenticationv1beta1.LabelSourceNamespace:     account.Namespace,
				authenticationv1beta1.DeprecatedLabelAskedFrom: account.Namespace,
			},
			Annotations: map[string]string{authenticationv1beta1.AnnotationMadeFor: string(account.UID)},
		},
		Spec: authenticationv1beta1.ManagedServiceAccountSpec{Rotation: account.Spec.Rotation},
	}
}

// desiredCopy returns the Secret with the copied token, owned by the ManagedServiceAccount. Labels
// and annotations of others stay.
func desiredCopy(present *corev1.Secret, account *authenticationv1beta1.ManagedServiceAccount, token map[string][]byte) *corev1.Secret {
	secret := present.DeepCopy()
	secret.Type = corev1.SecretTypeOpaque
	secret.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: authenticationv1beta1.GroupVersion.String(), Kind: "ManagedServiceAccount", Name: account.Name, UID: account.UID,
	}}
	metav1.SetMetaDataLabel(&secret.ObjectMeta, authenticationv1beta1.LabelManagedServiceAccount, authenticationv1beta1.LabelManagedServiceAccountValue)
	secret.Data = token
	return secret
}

// mayWrite reports whether a Secret is our copy, or does not exist. The label is not enough,
// because other products set it too.
func mayWrite(secret *corev1.Secret, account *authenticationv1beta1.ManagedServiceAccount) bool {
	return secret.ResourceVersion == "" || isOf(secret, account)
}

// isOf reports whether a Secret belongs to this ManagedServiceAccount, by UID.
func isOf(secret *corev1.Secret, account *authenticationv1beta1.ManagedServiceAccount) bool {
	return slices.ContainsFunc(secret.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.UID == account.UID })
}

// desiredStatus returns the mirror's status for the source.
func desiredStatus(mirror, account *authenticationv1beta1.ManagedServiceAccount) authenticationv1beta1.ManagedServiceAccountStatus {
	status := *account.Status.DeepCopy()
	status.TokenSecretRef = mirror.Status.TokenSecretRef.DeepCopy()
	status.ExpirationTimestamp = mirror.Status.ExpirationTimestamp.DeepCopy()
	for _, condition := range mirror.Status.Conditions {
		if condition.ObservedGeneration == mirror.Generation {
			condition.ObservedGeneration = account.Generation
		} else {
			condition.ObservedGeneration = 0
		}
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	return status
}

// refusedStatus returns a status without a token, with the reason.
func refusedStatus(account *authenticationv1beta1.ManagedServiceAccount, why string) authenticationv1beta1.ManagedServiceAccountStatus {
	status := *account.Status.DeepCopy()
	status.TokenSecretRef, status.ExpirationTimestamp = nil, nil
	for _, kind := range []string{authenticationv1beta1.ConditionSecretCreated, authenticationv1beta1.ConditionTokenReported} {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionFalse, Reason: authenticationv1beta1.ReasonNotServed, Message: why, ObservedGeneration: account.Generation,
		})
	}
	return status
}

// reservedPrefixes are prefixes of namespaces that cannot be assigned to a member, because the
// administrators of one member do not administer them.
var reservedPrefixes = []string{"kube-", "fleet-"}

// Given returns the member that an administrator assigned a namespace to, or "". why is not empty
// if the label is refused.
func Given(namespace string, labels map[string]string, gatewayNamespace string) (member, why string) {
	member = labels[clusterv1beta1.LabelMember]
	if member == "" {
		return "", ""
	}
	if namespace == gatewayNamespace {
		return "", fmt.Sprintf("namespace %s is the gateway's own and cannot be assigned to a member", namespace)
	}
	for _, prefix := range reservedPrefixes {
		if strings.HasPrefix(namespace, prefix) {
			return "", fmt.Sprintf("namespaces that begin with %s cannot be assigned to a member", prefix)
		}
	}
	return member, ""
}
