// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

func desiredTokenStatus(token *registrationv1alpha1.ClusterRegistrationToken, defaults Defaults, life life, issued issueState) registrationv1alpha1.ClusterRegistrationTokenStatus {
	status := *token.Status.DeepCopy()
	status.Expires = nil
	if !life.infinite {
		status.Expires = &metav1.Time{Time: life.expires}
	}
	status.SecretName = ""
	if issued == issuedValues {
		status.SecretName = token.Name
	}
	allowed, refused := allowanceOf(token, defaults)
	ready := tokenReady(token, issued)
	switch {
	case issued != issuedValues:
	case refused != nil:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, registrationv1alpha1.TokenReasonInvalid, refused.Message
	case allowed.reachedUseLimit():
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, registrationv1alpha1.TokenReasonUseLimitReached, useLimitReached(allowed)
	}
	for _, condition := range []metav1.Condition{ready, restricted(allowed, refused)} {
		condition.ObservedGeneration = token.Generation
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	return status
}

func tokenReady(token *registrationv1alpha1.ClusterRegistrationToken, issued issueState) metav1.Condition {
	condition := metav1.Condition{Type: registrationv1alpha1.TokenConditionReady, Status: metav1.ConditionFalse}
	switch issued {
	case issuedValues:
		condition.Status = metav1.ConditionTrue
		condition.Reason = registrationv1alpha1.TokenReasonIssued
		condition.Message = fmt.Sprintf("the agent's values are in Secret %q, key %q", token.Name, registrationv1alpha1.RegistrationValuesKey)
	case waitingForToken:
		condition.Reason = ReasonWaitingForToken
		condition.Message = "the hub's controller manager has not filled the token Secret yet: if this lasts, check that it runs"
	case secretNotOurs:
		condition.Reason = registrationv1alpha1.TokenReasonSecretConflict
		condition.Message = fmt.Sprintf("Secret %q exists and does not belong to this token: delete it, or choose another name for the token", token.Name)
	case namespaceForbidden:
		condition.Reason = registrationv1alpha1.TokenReasonNamespaceNotAllowed
		condition.Message = namespaceNotAllowed(token.Namespace)
	case serverURLMissing:
		condition.Reason = registrationv1alpha1.TokenReasonServerURLMissing
		condition.Message = "the gateway does not know the hub's URL for members: set --hub-url"
	}
	return condition
}

// ReasonWaitingForToken is the reason for Ready=False of a ClusterRegistrationToken whose token is not
// available yet.
const ReasonWaitingForToken = "WaitingForToken"

// restricted reports the risk of a leaked token. A token that admits clusters without approval is
// harmless only if it is for one Cluster, or if they are few and choose no labels.
func restricted(t allowance, refused *refusal.Refusal) metav1.Condition {
	condition := metav1.Condition{
		Type: registrationv1alpha1.TokenConditionRestricted, Status: metav1.ConditionTrue, Reason: registrationv1alpha1.TokenReasonRestricted,
	}
	switch {
	case refused != nil:
		condition.Message = "it admits no cluster"
	case t.cluster != "":
		condition.Message = fmt.Sprintf("it is for Cluster %q only", t.cluster)
	case !t.approved:
		condition.Message = "each cluster that registers with it needs an approval"
	case t.uses > 0 && len(t.labels) == 0:
		condition.Message = fmt.Sprintf("it admits at most %d clusters, which choose no labels", t.uses)
	default:
		condition.Status, condition.Reason = metav1.ConditionFalse, registrationv1alpha1.TokenReasonPermissive
		condition.Message = permissive(t)
	}
	return condition
}

func permissive(t allowance) string {
	number, labels := "any number of clusters", "which choose no labels"
	if t.uses > 0 {
		number = fmt.Sprintf("%d clusters", t.uses)
	}
	switch {
	case slices.Contains(t.labels, "*"):
		labels = "which choose any labels"
	case len(t.labels) > 0:
		labels = "which choose the labels " + strings.Join(t.labels, ",")
	}
	return fmt.Sprintf("its holder can register %s, %s, and placements may choose them at once: set the annotations %s, %s and %s, "+
		"or start the gateway with --registration-policy=strict",
		number, labels, registrationv1alpha1.AnnotationApproval, registrationv1alpha1.AnnotationUses, registrationv1alpha1.AnnotationAllowedLabels)
}
