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
	// maxMessageBytes bounds what an API server's answer puts into a condition.
	maxMessageBytes = 2 << 10
	// maxNoteBytes bounds the same in an event: the hub takes 1 KiB.
	maxNoteBytes = 1000
)

// isAbout reports whether the status was written for the token with these claims.
func isAbout(status *authenticationv1beta1.ManagedServiceAccountStatus, claims boundtoken.Claims) bool {
	return status.TokenSecretRef != nil && status.ExpirationTimestamp != nil && status.ExpirationTimestamp.Time.Equal(claims.Expires)
}

// reportToken says that the token with these claims is in place, since refreshed
// unless the status tells already.
func reportToken(account *authenticationv1beta1.ManagedServiceAccount, claims boundtoken.Claims, refreshed, now time.Time) {
	if !isAbout(&account.Status, claims) {
		account.Status.TokenSecretRef = &authenticationv1beta1.SecretRef{Name: account.Name, LastRefreshTimestamp: metav1.NewTime(refreshed.Truncate(time.Second))}
		account.Status.ExpirationTimestamp = ptr.To(metav1.NewTime(claims.Expires))
	}
	setCondition(account, authenticationv1beta1.ConditionTokenReported, metav1.ConditionTrue, authenticationv1beta1.ReasonTokenReported,
		describe(account.Spec.Rotation, claims), now)
}

// describe tells what becomes of the token, and where the API server that issued
// it decided otherwise than was asked. Only a token that is not refreshed is told
// with its end: the text of another one stays the same from token to token.
func describe(rotation authenticationv1beta1.ManagedServiceAccountRotation, claims boundtoken.Claims) string {
	text := "The token is refreshed before it expires"
	if !rotation.Rotates() {
		text = fmt.Sprintf("The token expires at %s and is not refreshed, since spec.rotation.enabled is false", claims.Expires.UTC().Format(time.RFC3339))
	}
	asked, granted := rotation.AskedValidity(), claims.Expires.Sub(claims.Issued)
	if differs(granted, asked) {
		text += fmt.Sprintf("; of spec.rotation.validity %s the member's API server granted %s", asked, granted)
	}
	return text
}

// reportSecret says whether the Secret is there.
func reportSecret(account *authenticationv1beta1.ManagedServiceAccount, secret *corev1.Secret, now time.Time) {
	if secret.ResourceVersion == "" {
		setCondition(account, authenticationv1beta1.ConditionSecretCreated, metav1.ConditionFalse, authenticationv1beta1.ReasonTokenReportFailed,
			"Secret "+account.Name+" is not on the hub", now)
		return
	}
	setCondition(account, authenticationv1beta1.ConditionSecretCreated, metav1.ConditionTrue, authenticationv1beta1.ReasonSecretCreated,
		"Secret "+account.Name+" is on the hub", now)
}

// reportFailure says that the token could not be refreshed, and why. The older
// token, if it lives, is still in the Secret. It returns for how long this has
// been failing, and whether that is told for the first time.
func reportFailure(account *authenticationv1beta1.ManagedServiceAccount, failure error, now time.Time) (failing time.Duration, first bool) {
	first = !meta.IsStatusConditionFalse(account.Status.Conditions, authenticationv1beta1.ConditionTokenReported)
	setCondition(account, authenticationv1beta1.ConditionTokenReported, metav1.ConditionFalse, authenticationv1beta1.ReasonTokenReportFailed, messageOf(failure), now)
	since := meta.FindStatusCondition(account.Status.Conditions, authenticationv1beta1.ConditionTokenReported).LastTransitionTime
	return now.Sub(since.Time), first
}

func messageOf(failure error) string {
	message := untrusted.Truncate(failure.Error(), maxMessageBytes)
	if apierrors.IsForbidden(failure) && !apierrors.HasStatusCause(failure, corev1.NamespaceTerminatingCause) {
		message += ": the agent's role has to allow it"
	}
	return message
}

func setCondition(account *authenticationv1beta1.ManagedServiceAccount, kind string, status metav1.ConditionStatus, reason, message string, now time.Time) {
	meta.SetStatusCondition(&account.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: account.Generation,
		LastTransitionTime: metav1.NewTime(now),
	})
}

// writeStatus writes the status if it changed. It returns a conflict if before is
// not the newest any more.
func (r *Reconciler) writeStatus(ctx context.Context, before, account *authenticationv1beta1.ManagedServiceAccount) error {
	if equality.Semantic.DeepEqual(before.Status, account.Status) {
		return nil
	}
	if err := r.Hub.Status().Patch(ctx, account, reconcileutil.PatchFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of ManagedServiceAccount %s: %w", account.Name, err)
	}
	return nil
}
