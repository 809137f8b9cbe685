// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	"fleetgate.io/fleetgate/pkg/serviceaccount/boundtoken"
)

// noticeable is the minimum difference between granted and requested lifetime that is reported,
// because API servers round.
const noticeable = time.Minute

// step is the action for a token.
type step int

const (
	// keep leaves everything as it is.
	keep step = iota
	// restore writes the same token again, because the Secret was altered.
	restore
	// request requests a new token.
	request
	// spent means that the account does not rotate and its only token is gone.
	spent
)

// present is the state of a token.
type present struct {
	// claims are the claims of the token, if it is one.
	claims boundtoken.Claims
	// works is set if the member accepts the token for the account.
	works bool
	// whole is set if the Secret is unaltered.
	whole bool
}

// decide returns the action, and until when it is valid.
func decide(account *authenticationv1beta1.ManagedServiceAccount, onMember types.UID, found present, now time.Time) (step, time.Time) {
	rotates := account.Spec.Rotation.Rotates()
	if !found.works {
		if !rotates && account.Status.TokenSecretRef != nil {
			return spent, time.Time{}
		}
		return request, time.Time{}
	}
	due := found.claims.Expires
	if rotates {
		due = dueAt(&account.Status, found.claims, onMember, now)
		if !now.Before(due) || requestsOtherValidity(account, found.claims) {
			return request, time.Time{}
		}
	}
	if !found.whole {
		return restore, due
	}
	return keep, due
}

// requestsOtherValidity reports whether the spec was changed since the last status and requests another
// lifetime than the token has. If an API server always grants another lifetime, the agent requests it
// only once.
func requestsOtherValidity(account *authenticationv1beta1.ManagedServiceAccount, claims boundtoken.Claims) bool {
	reported := meta.FindStatusCondition(account.Status.Conditions, authenticationv1beta1.ConditionTokenReported)
	if reported == nil || reported.ObservedGeneration >= account.Generation {
		return false
	}
	return differs(claims.Expires.Sub(claims.Issued), account.Spec.Rotation.RequestedValidity())
}

func differs(granted, requested time.Duration) bool { return (granted - requested).Abs() > noticeable }

// dueAt returns when to refresh a token. If the status has the time of this token's refresh, that
// time counts, because it is by the agent's clock. Claims are by the member's clock: if that lags,
// each token would be due as soon as it is issued.
func dueAt(status *authenticationv1beta1.ManagedServiceAccountStatus, claims boundtoken.Claims, account types.UID, now time.Time) time.Time {
	issued := claims.Issued
	if isAbout(status, claims) && !status.TokenSecretRef.LastRefreshTimestamp.After(now) {
		issued = status.TokenSecretRef.LastRefreshTimestamp.Time
	}
	return boundtoken.RefreshAt(issued, issued.Add(claims.Expires.Sub(claims.Issued)), boundtoken.Jitter(account, claims.Issued))
}

// retryAfter is the retry delay: half of the time since the first failure, so that retries become
// rarer.
func retryAfter(failing time.Duration) time.Duration {
	return min(max(failing/2, firstRetry), lastRetry)
}
