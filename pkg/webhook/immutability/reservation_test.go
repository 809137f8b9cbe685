// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func newReservations(objects ...client.Object) (*reservations, *clienttesting.FakePassiveClock) {
	hub := fake.NewClientBuilder().WithObjects(objects...).Build()
	clock := clienttesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	return &reservations{reader: hub, writer: hub, namespace: "fleet-system", clock: clock}, clock
}

func named(uid string) client.Object {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: uid, UID: types.UID(uid)}}
}

func TestReservation_LastsThirtySeconds(t *testing.T) {
	kept, clock := newReservations()
	first, err := kept.read(t.Context(), "l")
	if err != nil {
		t.Fatal(err)
	}
	if err := kept.reserve(t.Context(), first, "p", named("a")); err != nil {
		t.Fatal(err)
	}
	for after, gone := range map[time.Duration]bool{0: true, 29 * time.Second: true, 30 * time.Second: false} {
		clock.SetTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(after))
		now, err := kept.read(t.Context(), "l")
		if err != nil {
			t.Fatal(err)
		}
		if now.gone("a") != gone || now.gone("b") {
			t.Errorf("after %s a is gone: %v, b: %v", after, now.gone("a"), now.gone("b"))
		}
	}
}

func TestReservation_ConcurrentWritersConflict(t *testing.T) {
	for name, before := range map[string]int{"no Lease yet": 0, "a Lease": 1} {
		kept, _ := newReservations()
		for range before {
			first, err := kept.read(t.Context(), "l")
			if err != nil {
				t.Fatal(err)
			}
			if err := kept.reserve(t.Context(), first, "p", named("z")); err != nil {
				t.Fatal(err)
			}
		}
		one, err := kept.read(t.Context(), "l")
		if err != nil {
			t.Fatal(err)
		}
		two, err := kept.read(t.Context(), "l")
		if err != nil {
			t.Fatal(err)
		}
		if err := kept.reserve(t.Context(), one, "p", named("a")); err != nil {
			t.Fatal(err)
		}
		if err := kept.reserve(t.Context(), two, "p", named("b")); !apierrors.IsConflict(err) {
			t.Errorf("%s: got %v, want a conflict", name, err)
		}
	}
}

func TestReservations_AreLimitedAndTolerateBadData(t *testing.T) {
	kept, _ := newReservations(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet-system", Name: "broken", Annotations: map[string]string{AnnotationReservations: "{"},
	}})
	if _, err := kept.read(t.Context(), "broken"); err == nil || !strings.Contains(err.Error(), "delete the Lease") {
		t.Errorf("got %v, want an error with the remedy", err)
	}
	full := &guardLease{lease: &coordinationv1.Lease{}, held: make([]reservation, maxReservations)}
	if err := kept.reserve(t.Context(), full, "p", named("a")); err == nil || !strings.Contains(err.Error(), "try again") {
		t.Errorf("got %v, want to be told to try again", err)
	}
}

func TestLeaseName_DiffersByGroup(t *testing.T) {
	names := map[string]bool{}
	for _, parts := range [][4]string{{"p", "g", "n", "l"}, {"p", "g", "nl", ""}, {"pg", "", "n", "l"}, {"p", "g", "", "l"}} {
		names[leaseName(parts[0], parts[1], parts[2], parts[3])] = true
	}
	if len(names) != 4 {
		t.Errorf("got %d names for 4 groups: %v", len(names), names)
	}
}

// The name of a guard's Lease is stored, so that another value would be another object.
func TestLeaseName_StaysTheSame(t *testing.T) {
	if got, want := leaseName("retain", "guard-1", "shop", "app=web"), "guard-73a959352b05e5d5413c577714c578ea"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
