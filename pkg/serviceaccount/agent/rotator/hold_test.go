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

// keeper is a rotator whose hub counts, and has no ManagedServiceAccount.
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
		Epochs: retention.NewEpochs(hub, "m"), Holds: retention.NewBook(nil),
	}}
}

// has gives the member an account of an epoch, for a ManagedServiceAccount of before.
func (k *keeper) has(epoch string) {
	k.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "accounts", Name: "a", UID: "account", Annotations: map[string]string{
		authenticationv1beta1.AnnotationMadeFor: "fleet-system/former", retention.EpochAnnotation: epoch}}}
	if err := k.Member.Create(k.Context(), account); err != nil {
		k.Fatal(err)
	}
}

// is what the member has of it; nil if it is gone.
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

// vanish looks after an account whose ManagedServiceAccount the hub has no more.
func (k *keeper) vanish() {
	k.Helper()
	if _, err := k.vanished(k.Context(), client.ObjectKey{Namespace: "fleet-member-m", Name: "a"}); err != nil {
		k.Fatal(err)
	}
}

// ensure has one of a UID ask for the account.
func (k *keeper) ensure(uid types.UID) *corev1.ServiceAccount {
	k.Helper()
	account, err := k.ensureAccount(k.Context(), &authenticationv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: uid}})
	if err != nil {
		k.Fatal(err)
	}
	return account
}

func TestHoldAccount_RetainsTheAccountUntilItIsReleased(t *testing.T) {
	k := newKeeper(t, "2")
	k.has("3")
	for range 2 {
		k.vanish()
	}
	held := k.is()
	if held == nil || !retention.MarkOn(held).Is() || k.Holds.Sum().Objects != 1 {
		t.Fatalf("the account is %v, held is %v", held, k.Holds.Sum())
	}
	k.Holds.Release([]string{"another", retention.MarkOn(held).ID})
	k.vanish()
	if k.is() != nil || k.Holds.Sum() != (retention.Sum{}) {
		t.Errorf("it is not gone, or told: %v", k.Holds.Sum())
	}
}

func TestVanished_DeletesTheAccountOfADeletedManagedServiceAccount(t *testing.T) {
	for epoch, why := range map[string]string{"3": "the hub has counted so far", "": "it is of an agent of before"} {
		k := newKeeper(t, "3")
		k.has(epoch)
		k.vanish()
		if k.is() != nil {
			t.Errorf("it stays though %s", why)
		}
	}
}

func TestEnsureAccount_AdoptsARetainedAccountWithItsTokens(t *testing.T) {
	for name, looked := range map[string]bool{"after the agent has seen that it vanished": true, "while the agent was away": false} {
		t.Run(name, func(t *testing.T) {
			k := newKeeper(t, "2")
			k.Epochs.Brought(k.largestEpoch)
			k.has("3")
			if looked {
				k.vanish()
			}
			again := k.ensure("made-again")
			if again.UID != "account" || retention.MarkOn(again).Is() || k.Holds.Sum() != (retention.Sum{}) {
				t.Errorf("it is %v, held is %v", again.ObjectMeta, k.Holds.Sum())
			}
			k.vanish()
			if k.is() != nil {
				t.Error("it stays though it was deleted in order now")
			}
		})
	}
}

func TestEnsureAccount_ReplacesTheAccountOfADeletedManagedServiceAccount(t *testing.T) {
	k := newKeeper(t, "3")
	k.has("3")
	if again := k.ensure("another"); again.UID == "account" {
		t.Error("tokens of the former ManagedServiceAccount hold for another of its name")
	}
}
