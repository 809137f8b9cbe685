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

// noticeable is how far the life that was granted may be from the one that was
// asked for without being told: API servers round.
const noticeable = time.Minute

// step is what is to be done about a token.
type step int

const (
	// keep leaves everything as it is.
	keep step = iota
	// restore writes the same token again: what stands around it was altered.
	restore
	// request asks for a new token.
	request
	// spent is for an account that does not rotate and whose one token is gone.
	spent
)

// present is what there is of a token.
type present struct {
	// claims are those of the token, if it is one.
	claims boundtoken.Claims
	// works is whether the member takes it for the account.
	works bool
	// whole is whether the Secret around it is as it should be.
	whole bool
}

// decide says what is to be done, and until when that holds.
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
		if !now.Before(due) || asksForAnother(account, found.claims) {
			return request, time.Time{}
		}
	}
	if !found.whole {
		return restore, due
	}
	return keep, due
}

// asksForAnother reports whether the spec was changed since the token was looked
// at last, and asks for another life than it has. An API server that always
// grants another one is asked once.
func asksForAnother(account *authenticationv1beta1.ManagedServiceAccount, claims boundtoken.Claims) bool {
	told := meta.FindStatusCondition(account.Status.Conditions, authenticationv1beta1.ConditionTokenReported)
	if told == nil || told.ObservedGeneration >= account.Generation {
		return false
	}
	return differs(claims.Expires.Sub(claims.Issued), account.Spec.Rotation.AskedValidity())
}

func differs(granted, asked time.Duration) bool { return (granted - asked).Abs() > noticeable }

// dueAt is when to refresh a token. It reckons from the agent's own clock if the
// status tells when this token was written. Claims go by the member's clock: by
// them, tokens of a member whose clock is behind would be due as soon as issued.
func dueAt(status *authenticationv1beta1.ManagedServiceAccountStatus, claims boundtoken.Claims, account types.UID, now time.Time) time.Time {
	issued := claims.Issued
	if isAbout(status, claims) && !status.TokenSecretRef.LastRefreshTimestamp.After(now) {
		issued = status.TokenSecretRef.LastRefreshTimestamp.Time
	}
	return boundtoken.RefreshAt(issued, issued.Add(claims.Expires.Sub(claims.Issued)), boundtoken.Jitter(account, claims.Issued))
}

// retryAfter is when to try again what has failed for so long: after half of
// that time again, so that tries become fewer.
func retryAfter(failing time.Duration) time.Duration {
	return min(max(failing/2, firstRetry), lastRetry)
}
