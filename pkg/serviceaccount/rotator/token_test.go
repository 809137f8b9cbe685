// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	msav1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	"fleetgate.io/fleetgate/pkg/serviceaccount"
)

func token(subject, uid string) []byte {
	payload := fmt.Sprintf(`{"sub":%q,"iat":1800000000,"exp":1800003600,"kubernetes.io":{"serviceaccount":{"uid":%q}}}`, subject, uid)
	return []byte("e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln")
}

func TestWhatWasAlteredInTheSecretIsSeen(t *testing.T) {
	onMember := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: msav1beta1.AccountNamespace, Name: "a", UID: "u1"}}
	account := &msav1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "owner"}}
	tests := map[string]struct {
		alter func(*corev1.Secret)
		want  bool
	}{
		"nothing":                    {func(*corev1.Secret) {}, true},
		"a label of somebody's":      {func(s *corev1.Secret) { s.Labels["team"] = "x" }, true},
		"our label":                  {func(s *corev1.Secret) { s.Labels = nil }, false},
		"the owner":                  {func(s *corev1.Secret) { s.OwnerReferences = nil }, false},
		"an owner of the same name":  {func(s *corev1.Secret) { s.OwnerReferences[0].UID = "earlier" }, false},
		"the CA":                     {func(s *corev1.Secret) { s.Data["ca.crt"] = []byte("other") }, false},
		"another key":                {func(s *corev1.Secret) { s.Data["extra"] = nil }, false},
		"no token":                   {func(s *corev1.Secret) { delete(s.Data, "token") }, false},
		"not a token":                {func(s *corev1.Secret) { s.Data["token"] = []byte("abc") }, false},
		"token of an earlier one":    {func(s *corev1.Secret) { s.Data["token"] = token(msav1beta1.AccountUsername("a"), "u0") }, false},
		"token of another account":   {func(s *corev1.Secret) { s.Data["token"] = token(msav1beta1.AccountUsername("b"), "u1") }, false},
		"token of another namespace": {func(s *corev1.Secret) { s.Data["token"] = token("system:serviceaccount:kube-system:a", "u1") }, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{
					Labels:          map[string]string{msav1beta1.LabelManagedServiceAccount: msav1beta1.LabelManagedServiceAccountValue},
					OwnerReferences: []metav1.OwnerReference{{UID: account.UID}},
				},
				Data: map[string][]byte{"token": token(msav1beta1.AccountUsername("a"), "u1"), "ca.crt": []byte("ca")},
			}
			tt.alter(secret)
			if _, got := inspect(secret, account, onMember, []byte("ca")); got != tt.want {
				t.Errorf("usable: %v, want %v", got, tt.want)
			}
		})
	}
}

func TestDueGoesByTheAgentsClock(t *testing.T) {
	issued := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	claims := serviceaccount.Claims{Account: "u1", Issued: issued, Expires: issued.Add(time.Hour)}
	status := func(written time.Time, expires time.Time) *msav1beta1.ManagedServiceAccountStatus {
		return &msav1beta1.ManagedServiceAccountStatus{
			TokenSecretRef: &msav1beta1.SecretRef{LastRefreshTimestamp: metav1.NewTime(written)}, ExpirationTimestamp: ptr.To(metav1.NewTime(expires)),
		}
	}
	now := issued.Add(3 * time.Hour)
	tests := map[string]struct {
		status *msav1beta1.ManagedServiceAccountStatus
		from   time.Time
	}{
		"member two hours behind":     {status(issued.Add(2*time.Hour), claims.Expires), issued.Add(2 * time.Hour)},
		"no status yet":               {&msav1beta1.ManagedServiceAccountStatus{}, issued},
		"status of the token before":  {status(issued.Add(-time.Hour), issued), issued},
		"status from the future":      {status(now.Add(time.Minute), claims.Expires), issued},
		"status without an expiry":    {&msav1beta1.ManagedServiceAccountStatus{TokenSecretRef: &msav1beta1.SecretRef{}}, issued},
		"status without a Secret yet": {&msav1beta1.ManagedServiceAccountStatus{ExpirationTimestamp: ptr.To(metav1.NewTime(claims.Expires))}, issued},
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

func TestFailureIsToldWithItsRemedy(t *testing.T) {
	resource := schema.GroupResource{Resource: "serviceaccounts"}
	terminating := apierrors.NewForbidden(resource, "a", errors.New("namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	tests := map[string]struct {
		failure  error
		want     string
		mustLack string
	}{
		"mistake":     {mistake("rename it"), "rename it", "role"},
		"no right":    {fmt.Errorf("asking: %w", apierrors.NewForbidden(resource, "a", errors.New("no"))), "the agent's role has to allow it", ""},
		"terminating": {terminating, "being terminated", "role"},
		"very long":   {errors.New(strings.Repeat("ä", maxMessageBytes)), "ä", "\ufffd"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			account := &msav1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
			reportFailure(account, tt.failure)
			got := meta.FindStatusCondition(account.Status.Conditions, msav1beta1.ConditionTokenReported)
			if got.Status != metav1.ConditionFalse || got.Reason != msav1beta1.ReasonTokenReportFailed || got.ObservedGeneration != 3 {
				t.Errorf("condition is %+v", got)
			}
			if !strings.Contains(got.Message, tt.want) || tt.mustLack != "" && strings.Contains(got.Message, tt.mustLack) || len(got.Message) > maxMessageBytes+100 {
				t.Errorf("message is %q", got.Message)
			}
		})
	}
}
