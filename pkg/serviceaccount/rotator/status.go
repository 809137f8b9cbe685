// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	msav1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	"fleetgate.io/fleetgate/pkg/serviceaccount"
)

// maxMessageBytes bounds what an API server's answer puts into a condition.
const maxMessageBytes = 2 << 10

// isAbout reports whether the status was written for the token with these claims.
func isAbout(status *msav1beta1.ManagedServiceAccountStatus, claims serviceaccount.Claims) bool {
	return status.TokenSecretRef != nil && status.ExpirationTimestamp != nil && status.ExpirationTimestamp.Time.Equal(claims.Expires)
}

// reportToken says that the token with these claims is in place, since refreshed
// unless the status tells already.
func reportToken(account *msav1beta1.ManagedServiceAccount, claims serviceaccount.Claims, refreshed time.Time) {
	if !isAbout(&account.Status, claims) {
		account.Status.TokenSecretRef = &msav1beta1.SecretRef{Name: account.Name, LastRefreshTimestamp: metav1.NewTime(refreshed.Truncate(time.Second))}
		account.Status.ExpirationTimestamp = ptr.To(metav1.NewTime(claims.Expires))
	}
	setCondition(account, msav1beta1.ConditionTokenReported, metav1.ConditionTrue, msav1beta1.ReasonTokenReported,
		"The token is refreshed before it expires")
}

// reportSecret says whether the Secret is there.
func reportSecret(account *msav1beta1.ManagedServiceAccount, secret *corev1.Secret) {
	if secret.ResourceVersion == "" {
		setCondition(account, msav1beta1.ConditionSecretCreated, metav1.ConditionFalse, msav1beta1.ReasonTokenReportFailed,
			"Secret "+account.Name+" is not on the hub")
		return
	}
	setCondition(account, msav1beta1.ConditionSecretCreated, metav1.ConditionTrue, msav1beta1.ReasonSecretCreated,
		"Secret "+account.Name+" is on the hub")
}

// reportFailure says that the token could not be refreshed, and why. The older
// token, if it lives, is still in the Secret.
func reportFailure(account *msav1beta1.ManagedServiceAccount, failure error) {
	message := failure.Error()
	if len(message) > maxMessageBytes {
		message = strings.ToValidUTF8(message[:maxMessageBytes], "")
	}
	if apierrors.IsForbidden(failure) && !apierrors.HasStatusCause(failure, corev1.NamespaceTerminatingCause) {
		message += ": the agent's role has to allow it"
	}
	setCondition(account, msav1beta1.ConditionTokenReported, metav1.ConditionFalse, msav1beta1.ReasonTokenReportFailed, message)
}

func setCondition(account *msav1beta1.ManagedServiceAccount, kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&account.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: account.Generation,
	})
}

// writeStatus writes the status if it changed; nobody else writes it.
func (r *Reconciler) writeStatus(ctx context.Context, before, account *msav1beta1.ManagedServiceAccount) error {
	if equality.Semantic.DeepEqual(before.Status, account.Status) {
		return nil
	}
	if err := r.Hub.Status().Patch(ctx, account, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of ManagedServiceAccount %s: %w", account.Name, err)
	}
	return nil
}
