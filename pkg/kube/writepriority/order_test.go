// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package writepriority

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// began is true if the write may begin.
func began(turn chan struct{}) bool {
	select {
	case <-turn:
		return true
	default:
		return false
	}
}

func queue(o *Order, u Urgency, n int) []chan struct{} {
	var turns []chan struct{}
	for range n {
		turns = append(turns, o.queue(u))
	}
	return turns
}

func count(turns []chan struct{}) int {
	n := 0
	for _, turn := range turns {
		if began(turn) {
			n++
		}
	}
	return n
}

func TestOrder_MostUrgentBeginsAtOnce(t *testing.T) {
	for u := range urgencies {
		var o Order
		if n := count(queue(&o, u, 100)); n != 100 {
			t.Errorf("urgency %d: %d of 100 began", u, n)
		}
	}
}

func TestOrder_DeliveryYieldsToDecisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o Order
		few := Delivery.few()
		decisions := queue(&o, Decision, 2)
		works := queue(&o, Delivery, 50)
		accounts := queue(&o, Account, 50)
		if d, w, a := count(decisions), count(works), count(accounts); d != 2 || w != few || a != Account.few() {
			t.Fatalf("%d decisions, %d Works and %d accounts began, want 2, %d, %d", d, w, a, few, Account.few())
		}
		if !began(works[few-1]) {
			t.Error("who came first did not begin first")
		}
		o.leave(Delivery)
		if n := count(works); n != few+1 {
			t.Errorf("%d Works began after one ended, want %d", n, few+1)
		}
		o.leave(Decision)
		o.leave(Decision)
		time.Sleep(lull - 1)
		o.leave(Delivery)
		if n := count(works); n != few+2 {
			t.Errorf("%d Works began a moment after the last decision, want %d", n, few+2)
		}
		time.Sleep(time.Nanosecond)
		o.leave(Delivery)
		if w, a := count(works), count(accounts); w != 50 || a != Account.few() {
			t.Errorf("%d Works and %d accounts began after all decisions, want 50, %d", w, a, Account.few())
		}
		for range 47 {
			o.leave(Delivery)
		}
		time.Sleep(lull)
		o.leave(Account)
		if n := count(accounts); n != 50 {
			t.Errorf("%d accounts began after all else, want 50", n)
		}
	})
}

func TestOrder_CancelledWriteBlocksNobody(t *testing.T) {
	var o Order
	few := Delivery.few()
	queue(&o, Decision, 1)
	queue(&o, Delivery, few)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := o.pass(ctx, Delivery, func() error { t.Error("it was made"); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that the context has ended", err)
	}
	next := o.queue(Delivery)
	if began(next) {
		t.Error("one more than a few began")
	}
	o.leave(Delivery)
	if !began(next) {
		t.Error("the next one waits for the one that was withdrawn")
	}
	o.withdraw(Delivery, next)
	if o.inFlight[Delivery] != few-1 {
		t.Errorf("%d are in flight after the withdrawal of an admitted write, want %d", o.inFlight[Delivery], few-1)
	}
}

// It starts writes of all urgencies, and cancels some of them.
func TestOrder_MakesEveryWrite(t *testing.T) {
	var (
		o       Order
		running sync.WaitGroup
		made    atomic.Int64
		under   [urgencies]atomic.Int64
	)
	const writers, writes = 64, 200
	for range writers {
		running.Go(func() {
			for range writes {
				u := Urgency(rand.IntN(int(urgencies)))
				err := o.pass(t.Context(), u, func() error {
					under[u].Add(1)
					defer under[u].Add(-1)
					made.Add(1)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	if made.Load() != writers*writes {
		t.Errorf("%d writes were made, want %d", made.Load(), writers*writes)
	}
	for u := range urgencies {
		if o.inFlight[u] != 0 || len(o.waiting[u]) != 0 {
			t.Errorf("urgency %d: %d in flight and %d waiting after all have ended", u, o.inFlight[u], len(o.waiting[u]))
		}
	}
}

func TestClient_UrgencyDependsOnObject(t *testing.T) {
	var asked []string
	under := fake.NewClientBuilder().WithStatusSubresource(&corev1.Node{}).Build()
	c := new(Order).Client(under, func(object client.Object, status bool) Urgency {
		asked = append(asked, fmt.Sprint(object.GetName(), status))
		return Account
	})
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	nothing := client.RawPatch(types.MergePatchType, []byte("{}"))
	for _, err := range []error{
		c.Create(t.Context(), node), c.Update(t.Context(), node), c.Patch(t.Context(), node, nothing),
		c.Status().Update(t.Context(), node), c.Status().Patch(t.Context(), node, nothing),
		c.Get(t.Context(), client.ObjectKeyFromObject(node), node), c.Delete(t.Context(), node),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if want := []string{"afalse", "afalse", "afalse", "atrue", "atrue", "afalse"}; !slices.Equal(asked, want) {
		t.Errorf("asked of %v, want %v", asked, want)
	}
}
