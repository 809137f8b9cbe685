// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
)

func TestCredentialExpiry(t *testing.T) {
	granted := metav1.NewTime(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC))
	request := &registrationv1alpha1.ClusterRegistration{}
	if got, want := credentialExpiry(request, granted, time.Hour), granted.Add(time.Hour); !got.Equal(want) {
		t.Errorf("as requested: got %v, want %v", got, want)
	}
	request.Annotations = map[string]string{AnnotationCredentialExpires: "2026-08-01T12:10:00Z"}
	if got, want := credentialExpiry(request, granted, time.Hour), granted.Add(10*time.Minute); !got.Equal(want) {
		t.Errorf("less than requested: got %v, want %v", got, want)
	}
}

// oneToken is a hub with at most one registration token, which counts deletions.
type oneToken struct {
	client.Client
	token   *registrationv1alpha1.ClusterRegistrationToken
	deleted int
}

func (h *oneToken) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if h.token == nil || key.Name != h.token.Name {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	h.token.DeepCopyInto(into.(*registrationv1alpha1.ClusterRegistrationToken))
	return nil
}

func (h *oneToken) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	h.deleted++
	return nil
}

func TestKeepRefused_DeletesWaitingRequestOnceItsTokenEnds(t *testing.T) {
	made := time.Unix(1000, 0)
	token := func(ttl time.Duration) *registrationv1alpha1.ClusterRegistrationToken {
		t := &registrationv1alpha1.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Name: "t", CreationTimestamp: metav1.NewTime(made)}}
		t.Spec.TTL = &metav1.Duration{Duration: ttl}
		return t
	}
	for name, tc := range map[string]struct {
		token   *registrationv1alpha1.ClusterRegistrationToken
		label   string
		after   time.Duration
		deleted int
	}{
		"the token is valid":          {token(24 * time.Hour), "t", time.Hour, 0},
		"the token has no end":        {token(0), "t", time.Hour, 0},
		"the token expired":           {token(time.Minute), "t", time.Hour, 1},
		"the token was deleted":       {nil, "t", time.Hour, 1},
		"it names no token":           {token(0), "", time.Hour, 1},
		"it was made a moment ago":    {nil, "t", time.Minute, 0},
		"another token has not ended": {token(0), "u", time.Hour, 1},
	} {
		request := &registrationv1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(made)}}
		if tc.label != "" {
			request.Labels = map[string]string{registrationv1alpha1.LabelRegistrationToken: tc.label}
		}
		hub := &oneToken{token: tc.token}
		r := &GrantReconciler{Client: hub, Live: hub, Clock: clocktesting.NewFakePassiveClock(made.Add(tc.after))}
		result, err := r.keepRefused(t.Context(), request, registrationv1alpha1.RegistrationReasonWaiting)
		if err != nil || hub.deleted != tc.deleted || (result.RequeueAfter > 0) == (tc.deleted > 0) {
			t.Errorf("%s: deleted %d, %+v, %v", name, hub.deleted, result, err)
		}
	}
}
