// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
	"fleetgate.io/fleetgate/pkg/serviceaccount/boundtoken"
)

const (
	// maxMessageBytes limits the text of an API server in a condition.
	maxMessageBytes = 2 << 10
	// maxNoteBytes limits the same text in an event; the hub accepts 1 KiB.
	maxNoteBytes = 1000
)

// isAbout reports whether the status describes the token with these claims.
func isAbout(status *authenticationv1beta1.ManagedServiceAccountStatus, claims boundtoken.Claims) bool {
	return status.TokenSecretRef != nil && status.ExpirationTimestamp != nil && status.ExpirationTimestamp.Time.Equal(claims.Expires)
}

// reportToken reports a stored token with these claims. The refresh time is set unless the status
// describes the token already.
func reportToken(account *authenticationv1beta1.ManagedServiceAccount, claims boundtoken.Claims, refreshed, now time.Time) {
	if !isAbout(&account.Status, claims) {
		account.Status.TokenSecretRef = &authenticationv1beta1.SecretRef{Name: account.Name, LastRefreshTimestamp: metav1.NewTime(refreshed.Truncate(time.Second))}
		account.Status.ExpirationTimestamp = ptr.To(metav1.NewTime(claims.Expires))
	}
	setCondition(account, authenticationv1beta1.ConditionTokenReported, metav1.ConditionTrue, authenticationv1beta1.ReasonTokenReported,
		describe(account.Spec.Rotation, claims), now)
}

// describe says whether the token is refreshed, and how the granted lifetime differs from the
// requested one. It has the expiry only for a token that is not refreshed, so that the text does
// not change with each token.
func describe(rotation authenticationv1beta1.ManagedServiceAccountRotation, claims boundtoken.Claims) string {
	text := "The token is refreshed before it expires"
	if !rotation.Rotates() {
		text = fmt.Sprintf("The token expires at %s and is not refreshed, since spec.rotation.enabled is false", claims.Expires.UTC().Format(time.RFC3339))
	}
	requested, granted := rotation.RequestedValidity(), claims.Expires.Sub(claims.Issued)
	if differs(granted, requested) {
		text += fmt.Sprintf("; of spec.rotation.validity %s the member's API server granted %s", requested, granted)
	}
	return text
}

// reportSecret reports whether the Secret exists.
func reportSecret(account *authenticationv1beta1.ManagedServiceAccount, secret *corev1.Secret, now time.Time) {
	if secret.ResourceVersion == "" {
		setCondition(account, authenticationv1beta1.ConditionSecretCreated, metav1.ConditionFalse, authenticationv1beta1.ReasonTokenReportFailed,
			"Secret "+account.Name+" is not on the hub", now)
		return
	}
	setCondition(account, authenticationv1beta1.ConditionSecretCreated, metav1.ConditionTrue, authenticationv1beta1.ReasonSecretCreated,
		"Secret "+account.Name+" is on the hub", now)
}

// reportFailure reports that the token could not be refreshed. A valid older token stays in the
// Secret. It returns how long refreshes have been failing, and whether this is the first failure.
func reportFailure(account *authenticationv1beta1.ManagedServiceAccount, failure error, now time.Time) (failing time.Duration, first bool) {
	first = !meta.IsStatusConditionFalse(account.Status.Conditions, authenticationv1beta1.ConditionTokenReported)
	setCondition(account, authenticationv1beta1.ConditionTokenReported, metav1.ConditionFalse, authenticationv1beta1.ReasonTokenReportFailed, messageOf(failure), now)
	since := meta.FindStatusCondition(account.Status.Conditions, authenticationv1beta1.ConditionTokenReported).LastTransitionTime
	return now.Sub(since.Time), first
}

func messageOf(failure error) string {
	message := untrusted.Truncate(failure.Error(), maxMessageBytes)
	if apierrors.IsForbidden(failure) && !apierrors.HasStatusCause(failure, corev1.NamespaceTerminatingCause) {
		message += ": grant this right to the agent's role"
	}
	return message
}

func setCondition(account *authenticationv1beta1.ManagedServiceAccount, kind string, status metav1.ConditionStatus, reason, message string, now time.Time) {
	meta.SetStatusCondition(&account.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: account.Generation,
		LastTransitionTime: metav1.NewTime(now),
	})
}

// writeStatus writes the status if it changed. It returns a conflict if before is outdated.
func (r *Reconciler) writeStatus(ctx context.Context, before, account *authenticationv1beta1.ManagedServiceAccount) error {
	if equality.Semantic.DeepEqual(before.Status, account.Status) {
		return nil
	}
	if err := r.Hub.Status().Patch(ctx, account, reconcileutil.PatchFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of ManagedServiceAccount %s: %w", account.Name, err)
	}
	return nil
}
