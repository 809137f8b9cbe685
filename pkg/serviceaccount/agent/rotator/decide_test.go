// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	"fleetgate.io/fleetgate/pkg/serviceaccount/boundtoken"
)

func TestDecide(t *testing.T) {
	issued := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	good := present{claims: boundtoken.Claims{Issued: issued, Expires: issued.Add(time.Hour)}, works: true, whole: true}
	altered, dead := good, present{}
	altered.whole = false
	rotating := authenticationv1beta1.ManagedServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Generation: 1},
		Spec:       authenticationv1beta1.ManagedServiceAccountSpec{Rotation: authenticationv1beta1.ManagedServiceAccountRotation{Validity: metav1.Duration{Duration: time.Hour}}},
	}
	once := *rotating.DeepCopy()
	once.Spec.Rotation.Enabled = ptr.To(false)
	onceIssued := *once.DeepCopy()
	onceIssued.Status.TokenSecretRef = &authenticationv1beta1.SecretRef{}
	reported := func(account authenticationv1beta1.ManagedServiceAccount, generation int64, validity time.Duration) authenticationv1beta1.ManagedServiceAccount {
		changed := *account.DeepCopy()
		changed.Generation, changed.Spec.Rotation.Validity.Duration = generation, validity
		changed.Status.Conditions = []metav1.Condition{{Type: authenticationv1beta1.ConditionTokenReported, ObservedGeneration: 1}}
		return changed
	}
	early, late := 10*time.Minute, 55*time.Minute
	tests := map[string]struct {
		account authenticationv1beta1.ManagedServiceAccount
		found   present
		after   time.Duration
		want    step
	}{
		"no token yet":  {rotating, dead, early, request},
		"a valid token": {rotating, good, early, keep},
		"due":           {rotating, good, late, request},
		"the Secret was altered around the token":           {rotating, altered, early, restore},
		"altered and due":                                   {rotating, altered, late, request},
		"validity was changed":                              {reported(rotating, 2, 24*time.Hour), good, early, request},
		"validity was changed by less than it shows":        {reported(rotating, 2, time.Hour+time.Second), good, early, keep},
		"another granted validity, reported":                {reported(rotating, 1, 24*time.Hour), good, early, keep},
		"no rotation, no token yet":                         {once, dead, early, request},
		"no rotation, near its expiry":                      {onceIssued, good, late, keep},
		"no rotation, altered around the token":             {onceIssued, altered, late, restore},
		"no rotation, the token is gone":                    {onceIssued, dead, early, spent},
		"no rotation, validity was changed":                 {reported(onceIssued, 2, 24*time.Hour), good, early, keep},
		"no rotation, killed before the status was written": {once, good, early, keep},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			now := issued.Add(tt.after)
			got, until := decide(&tt.account, "u1", tt.found, now)
			if got != tt.want {
				t.Errorf("step %d, want %d", got, tt.want)
			}
			if (got == keep || got == restore) != until.After(now) {
				t.Errorf("holds until %s, which is not after %s", until, now)
			}
		})
	}
}

func TestDueAt_UsesTheAgentsClock(t *testing.T) {
	issued := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	claims := boundtoken.Claims{Account: "u1", Issued: issued, Expires: issued.Add(time.Hour)}
	status := func(written time.Time, expires time.Time) *authenticationv1beta1.ManagedServiceAccountStatus {
		return &authenticationv1beta1.ManagedServiceAccountStatus{
			TokenSecretRef: &authenticationv1beta1.SecretRef{LastRefreshTimestamp: metav1.NewTime(written)}, ExpirationTimestamp: ptr.To(metav1.NewTime(expires)),
		}
	}
	now := issued.Add(3 * time.Hour)
	tests := map[string]struct {
		status *authenticationv1beta1.ManagedServiceAccountStatus
		from   time.Time
	}{
		"member two hours behind":      {status(issued.Add(2*time.Hour), claims.Expires), issued.Add(2 * time.Hour)},
		"no status yet":                {&authenticationv1beta1.ManagedServiceAccountStatus{}, issued},
		"status of the previous token": {status(issued.Add(-time.Hour), issued), issued},
		"status from the future":       {status(now.Add(time.Minute), claims.Expires), issued},
		"status without an expiry":     {&authenticationv1beta1.ManagedServiceAccountStatus{TokenSecretRef: &authenticationv1beta1.SecretRef{}}, issued},
		"status without a Secret yet":  {&authenticationv1beta1.ManagedServiceAccountStatus{ExpirationTimestamp: ptr.To(metav1.NewTime(claims.Expires))}, issued},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			life := dueAt(tt.status, claims, claims.Account, now).Sub(tt.from)
			if life < 45*time.Minute || life > 51*time.Minute {
				t.Errorf("due %s after %s, want 80 %% of an hour", life, tt.from)
			}
		})
	}
}

func TestRetryAfter_GrowsWithTheFailure(t *testing.T) {
	for failing, want := range map[time.Duration]time.Duration{
		0: time.Second, 3 * time.Second: 1500 * time.Millisecond, 20 * time.Second: 10 * time.Second,
		time.Hour: 30 * time.Second, -time.Minute: time.Second,
	} {
		if got := retryAfter(failing); got != want {
			t.Errorf("after failing for %s it is tried in %s, want %s", failing, got, want)
		}
	}
}

func TestDescribe_ReportsAnotherGrantedLifetime(t *testing.T) {
	issued := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	claims := boundtoken.Claims{Issued: issued, Expires: issued.Add(time.Hour)}
	hour := authenticationv1beta1.ManagedServiceAccountRotation{Validity: metav1.Duration{Duration: time.Hour}}
	onceHour := authenticationv1beta1.ManagedServiceAccountRotation{Validity: hour.Validity, Enabled: ptr.To(false)}
	tests := map[string]struct {
		rotation authenticationv1beta1.ManagedServiceAccountRotation
		want     string
		lacks    string
	}{
		"granted as asked": {hour, "is refreshed before it expires", "granted"},
		"shortened":        {authenticationv1beta1.ManagedServiceAccountRotation{}, "of spec.rotation.validity 8640h0m0s the member's API server granted 1h0m0s", "2026"},
		"no rotation":      {onceHour, "expires at 2026-11-21T13:00:00Z and is not refreshed", "granted"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := describe(tt.rotation, claims)
			if !strings.Contains(got, tt.want) || strings.Contains(got, tt.lacks) {
				t.Errorf("message: %q", got)
			}
		})
	}
}

// The first day of a fleet: tokens of one day for 200 accounts on each of 50 members, all issued in
// the same second.
func TestDecide_SpreadsRefreshes(t *testing.T) {
	issued := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	const members, accounts = 50, 200
	window := time.Duration(float64(authenticationv1beta1.GatewayValidity) * 0.10)
	perSecond := map[int64]int{}
	for member := range members {
		for account := range accounts {
			claims := boundtoken.Claims{Issued: issued, Expires: issued.Add(authenticationv1beta1.GatewayValidity)}
			uid := types.UID(fmt.Sprintf("%d-%d", member, account))
			due := dueAt(&authenticationv1beta1.ManagedServiceAccountStatus{}, claims, uid, issued)
			if life := due.Sub(issued); life < authenticationv1beta1.GatewayValidity*75/100 || life > authenticationv1beta1.GatewayValidity*85/100 {
				t.Fatalf("%s is due after %s, outside 75 %% to 85 %% of its life", uid, life)
			}
			perSecond[due.Unix()]++
		}
	}
	mean, most := float64(members*accounts)/window.Seconds(), 0
	for _, n := range perSecond {
		most = max(most, n)
	}
	if most > 10 {
		t.Errorf("%d refreshes in one second, on average there are %.1f", most, mean)
	}
}
