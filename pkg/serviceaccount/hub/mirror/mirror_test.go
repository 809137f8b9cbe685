// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
)

func TestGiven(t *testing.T) {
	tests := map[string]struct {
		namespace string
		labels    map[string]string
		member    string
		refused   bool
	}{
		"labelled":                     {"cluster1", map[string]string{"fleetgate.io/member": "m1"}, "m1", false},
		"named like the member, only":  {"m1", nil, "", false},
		"labelled with nothing":        {"cluster1", map[string]string{"fleetgate.io/member": ""}, "", false},
		"Kubernetes' own":              {"kube-system", map[string]string{"fleetgate.io/member": "m1"}, "", true},
		"another member's own":         {"fleet-member-m2", map[string]string{"fleetgate.io/member": "m1"}, "", true},
		"the gateway's own":            {"gateways", map[string]string{"fleetgate.io/member": "m1"}, "", true},
		"the gateway's own, unlabeled": {"gateways", nil, "", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			member, why := Given(tt.namespace, tt.labels, "gateways")
			if member != tt.member || (why != "") != tt.refused {
				t.Errorf("given to %q, refused: %q", member, why)
			}
		})
	}
}

func TestDesiredStatus_CopiesTheStatusOfTheMirror(t *testing.T) {
	expires := metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	mirror := &authenticationv1beta1.ManagedServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Generation: 7},
		Status: authenticationv1beta1.ManagedServiceAccountStatus{
			ExpirationTimestamp: &expires,
			TokenSecretRef:      &authenticationv1beta1.SecretRef{Name: "a", LastRefreshTimestamp: expires},
			Conditions: []metav1.Condition{
				{Type: authenticationv1beta1.ConditionSecretCreated, Status: metav1.ConditionTrue, ObservedGeneration: 7, Reason: "R", LastTransitionTime: expires},
				{Type: authenticationv1beta1.ConditionTokenReported, Status: metav1.ConditionTrue, ObservedGeneration: 6, Reason: "R", LastTransitionTime: expires},
			},
		},
	}
	account := &authenticationv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	got := desiredStatus(mirror, account)
	want := *mirror.Status.DeepCopy()
	want.Conditions[0].ObservedGeneration = 2 // The agent has seen this spec.
	want.Conditions[1].ObservedGeneration = 0 // Or an earlier one.
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}

	refused := refusedStatus(&authenticationv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Generation: 3}, Status: got}, "unassigned")
	if refused.TokenSecretRef != nil || refused.ExpirationTimestamp != nil {
		t.Errorf("a refused one still tells of a token: %+v", refused)
	}
	for _, kind := range []string{authenticationv1beta1.ConditionSecretCreated, authenticationv1beta1.ConditionTokenReported} {
		condition := meta.FindStatusCondition(refused.Conditions, kind)
		if condition.Status != metav1.ConditionFalse || condition.Message != "unassigned" || condition.ObservedGeneration != 3 {
			t.Errorf("condition is %+v", condition)
		}
	}
}

func TestDesiredMirror_RequestsTheSameTokenOnly(t *testing.T) {
	account := &authenticationv1beta1.ManagedServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "a", UID: "u1", Labels: map[string]string{"team": "x"}, Finalizers: []string{"x/y"}},
		Spec: authenticationv1beta1.ManagedServiceAccountSpec{
			Rotation:                authenticationv1beta1.ManagedServiceAccountRotation{Enabled: ptr.To(false), Validity: metav1.Duration{Duration: time.Hour}},
			TTLSecondsAfterCreation: ptr.To[int32](60),
		},
	}
	want := &authenticationv1beta1.ManagedServiceAccount{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "fleet-member-m1", Name: "a",
			Labels:      map[string]string{"fleetgate.io/member": "m1", "fleetgate.io/source-namespace": "cluster1", "fleetgate.io/asked-from": "cluster1"},
			Annotations: map[string]string{"fleetgate.io/made-for": "u1"},
		},
		Spec: authenticationv1beta1.ManagedServiceAccountSpec{Rotation: account.Spec.Rotation},
	}
	mirror := desiredMirror(account, "m1")
	if diff := cmp.Diff(want, mirror); diff != "" {
		t.Errorf("mirror (-want +got):\n%s", diff)
	}
	if !isMirror(mirror, account, "m1") || isMirror(mirror, account, "m2") {
		t.Error("a mirror of another member is accepted")
	}
	account.UID = "u2"
	if isMirror(mirror, account, "m1") {
		t.Error("the mirror of a deleted source is accepted")
	}
}

func TestMayWrite(t *testing.T) {
	account := &authenticationv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "a", UID: "u1"}}
	labelled := map[string]string{authenticationv1beta1.LabelManagedServiceAccount: authenticationv1beta1.LabelManagedServiceAccountValue}
	tests := map[string]struct {
		secret metav1.ObjectMeta
		want   bool
	}{
		"there is none":             {metav1.ObjectMeta{}, true},
		"ours":                      {metav1.ObjectMeta{ResourceVersion: "1", OwnerReferences: []metav1.OwnerReference{{UID: "u1"}}}, true},
		"another product's":         {metav1.ObjectMeta{ResourceVersion: "1", Labels: labelled}, false},
		"that of an earlier one":    {metav1.ObjectMeta{ResourceVersion: "1", Labels: labelled, OwnerReferences: []metav1.OwnerReference{{UID: "u0"}}}, false},
		"an application's password": {metav1.ObjectMeta{ResourceVersion: "1"}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := mayWrite(&corev1.Secret{ObjectMeta: tt.secret}, account); got != tt.want {
				t.Errorf("may write: %v", got)
			}
		})
	}
}
