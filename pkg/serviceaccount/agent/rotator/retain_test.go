// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

// keeper is a rotator whose hub counts epochs and has no ManagedServiceAccount.
type keeper struct {
	*Reconciler
	*testing.T
}

func newKeeper(t *testing.T, count string) *keeper {
	t.Helper()
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, coordinationv1.AddToScheme, authenticationv1beta1.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	hub := fake.NewClientBuilder().WithScheme(known).WithObjects(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet-member-m", Name: "agent", Annotations: map[string]string{retention.EpochAnnotation: count}}}).Build()
	return &keeper{T: t, Reconciler: &Reconciler{
		Hub: hub, Live: hub, Member: fake.NewClientBuilder().WithScheme(known).Build(), HubNamespace: "fleet-member-m",
		AccountNamespace: "accounts", AgentNamespace: "fleet-system", Clock: testingclock.NewFakePassiveClock(time.Unix(0, 0)),
		Epochs: retention.NewEpochs(hub, "m"), Retention: retention.NewTracker(nil),
	}}
}

// has creates an account with an epoch for a previous ManagedServiceAccount on the member.
func (k *keeper) has(epoch string) {
	k.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "accounts", Name: "a", UID: "account", Annotations: map[string]string{
		authenticationv1beta1.AnnotationMadeFor: "fleet-system/former", retention.EpochAnnotation: epoch}}}
	if err := k.Member.Create(k.Context(), account); err != nil {
		k.Fatal(err)
	}
}

// is returns the account on the member; nil if it is deleted.
func (k *keeper) is() *corev1.ServiceAccount {
	k.Helper()
	account := &corev1.ServiceAccount{}
	err := k.Member.Get(k.Context(), client.ObjectKey{Namespace: "accounts", Name: "a"}, account)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		k.Fatal(err)
	}
	return account
}

// vanish reconciles an account whose ManagedServiceAccount does not exist.
func (k *keeper) vanish() {
	k.Helper()
	if _, err := k.vanished(k.Context(), client.ObjectKey{Namespace: "fleet-member-m", Name: "a"}); err != nil {
		k.Fatal(err)
	}
}

// ensure requests the account for a ManagedServiceAccount with this UID.
func (k *keeper) ensure(uid types.UID) *corev1.ServiceAccount {
	k.Helper()
	account, err := k.ensureAccount(k.Context(), &authenticationv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: uid}})
	if err != nil {
		k.Fatal(err)
	}
	return account
}

func TestReleaseAccount_RetainsTheAccountUntilItIsReleased(t *testing.T) {
	k := newKeeper(t, "2")
	k.has("3")
	for range 2 {
		k.vanish()
	}
	current := k.is()
	if current == nil || !retention.MarkOn(current).Is() || k.Retention.Summary().Objects != 1 {
		t.Fatalf("the account is %v, retained is %v", current, k.Retention.Summary())
	}
	k.Retention.Release([]string{"another", retention.MarkOn(current).ID})
	k.vanish()
	if k.is() != nil || k.Retention.Summary() != (retention.Summary{}) {
		t.Errorf("it is not deleted, or still counted: %v", k.Retention.Summary())
	}
}

func TestVanished_DeletesTheAccountOfADeletedManagedServiceAccount(t *testing.T) {
	for epoch, why := range map[string]string{"3": "the hub has counted so far", "": "it belongs to an earlier version of the agent"} {
		k := newKeeper(t, "3")
		k.has(epoch)
		k.vanish()
		if k.is() != nil {
			t.Errorf("it stays though %s", why)
		}
	}
}

func TestEnsureAccount_AdoptsARetainedAccountWithItsTokens(t *testing.T) {
	for name, looked := range map[string]bool{"after the agent saw the deletion": true, "while the agent was stopped": false} {
		t.Run(name, func(t *testing.T) {
			k := newKeeper(t, "2")
			k.Epochs.RegisterLargest(k.largestEpoch)
			k.has("3")
			if looked {
				k.vanish()
			}
			again := k.ensure("made-again")
			if again.UID != "account" || retention.MarkOn(again).Is() || k.Retention.Summary() != (retention.Summary{}) {
				t.Errorf("it is %v, retained is %v", again.ObjectMeta, k.Retention.Summary())
			}
			k.vanish()
			if k.is() != nil {
				t.Error("it stays after a regular deletion")
			}
		})
	}
}

func TestEnsureAccount_ReplacesTheAccountOfADeletedManagedServiceAccount(t *testing.T) {
	k := newKeeper(t, "3")
	k.has("3")
	if again := k.ensure("another"); again.UID == "account" {
		t.Error("tokens of the former ManagedServiceAccount are valid for another one of its name")
	}
}
