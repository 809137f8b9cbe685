// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// countingHub has the Lease of member "m", as gateways make it.
type countingHub struct {
	client.WithWatch
	t *testing.T
	// writes are those that changed something.
	writes int
	broken error
}

func newCountingHub(t *testing.T, objects ...client.Object) *countingHub {
	t.Helper()
	known := apiruntime.NewScheme()
	if err := coordinationv1.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	h := &countingHub{t: t}
	h.WithWatch = interceptor.NewClient(fake.NewClientBuilder().WithScheme(known).WithObjects(objects...).Build(), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if h.broken != nil {
				return h.broken
			}
			data, err := patch.Data(object)
			if err == nil && string(data) != "{}" {
				h.writes++
			}
			return errors.Join(err, c.Patch(ctx, object, patch, options...))
		},
	})
	return h
}

func leaseOf(count string) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-m", Name: "agent"}}
	if count != "" {
		lease.Annotations = map[string]string{EpochAnnotation: count}
	}
	return lease
}

// counts is what the hub has; restore puts it back.
func (h *countingHub) counts() string {
	h.t.Helper()
	lease := leaseOf("")
	if err := h.Get(h.t.Context(), client.ObjectKeyFromObject(lease), lease); err != nil {
		h.t.Fatal(err)
	}
	return lease.Annotations[EpochAnnotation]
}

func (h *countingHub) restore(count string) {
	h.t.Helper()
	lease := leaseOf("")
	if err := h.Get(h.t.Context(), client.ObjectKeyFromObject(lease), lease); err != nil {
		h.t.Fatal(err)
	}
	lease.Annotations = map[string]string{EpochAnnotation: count}
	if err := h.Update(h.t.Context(), lease); err != nil {
		h.t.Fatal(err)
	}
}

func begin(t *testing.T, e *Epochs) int64 {
	t.Helper()
	number, err := e.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return number
}

func lostOf(t *testing.T, e *Epochs, numbers ...int64) (lost []int64) {
	t.Helper()
	for _, number := range numbers {
		is, err := e.Lost(t.Context(), number)
		if err != nil {
			t.Fatal(err)
		}
		if is {
			lost = append(lost, number)
		}
	}
	return lost
}

func TestEpochs_DetectLostNumbersAfterTheHubAdvanced(t *testing.T) {
	hub := newCountingHub(t, leaseOf(""))
	e := NewEpochs(hub, "m")
	for want := int64(1); want <= 7; want++ {
		if got := begin(t, e); got != want {
			t.Fatalf("epoch %d, want %d", got, want)
		}
	}
	if lost := lostOf(t, e, 0, 1, 7); lost != nil {
		t.Errorf("lost are %v on a hub that lost nothing", lost)
	}
	hub.restore("5")
	if diff := cmp.Diff([]int64{6, 7}, lostOf(t, e, 0, 4, 5, 6, 7)); diff != "" {
		t.Errorf("lost after a restore (-want +got):\n%s", diff)
	}
	if begin(t, e) != 8 || hub.counts() != "8,6-7" {
		t.Errorf("the hub counts %s", hub.counts())
	}
	begin(t, e)
	if diff := cmp.Diff([]int64{6, 7}, lostOf(t, e, 4, 5, 6, 7, 8, 9)); diff != "" {
		t.Errorf("lost after the hub advanced (-want +got):\n%s", diff)
	}
	hub.restore("5") // the same backup again
	if begin(t, e) != 10 || hub.counts() != "10,6-9" {
		t.Errorf("the hub counts %s", hub.counts())
	}
}

func TestEpochs_DetectLostNumbersFromTheMemberAfterARestart(t *testing.T) {
	hub := newCountingHub(t, leaseOf("5"))
	e := NewEpochs(hub, "m")
	asked := 0
	for _, largest := range []int64{7, 3} {
		e.RegisterLargest(func(context.Context) (int64, error) { asked++; return largest, nil })
	}
	if begin(t, e) != 8 || hub.counts() != "8,6-7" {
		t.Errorf("the hub counts %s", hub.counts())
	}
	begin(t, e)
	if asked != 2 {
		t.Errorf("the member is read %d times", asked)
	}
	e.RegisterLargest(func(context.Context) (int64, error) { return 0, errors.New("the member is unreachable") })
	if _, err := e.Begin(t.Context()); err == nil || hub.counts() != "9,6-7" {
		t.Errorf("an epoch is begun although the numbers on the member are unknown: %v", err)
	}
}

func TestEpochs_NeedALeaseAndAReachableHub(t *testing.T) {
	hub := newCountingHub(t)
	if number := begin(t, NewEpochs(hub, "m")); number != 0 {
		t.Errorf("epoch %d without a Lease", number)
	}
	if lost := lostOf(t, NewEpochs(hub, "m"), 0, 3); !cmp.Equal(lost, []int64{3}) {
		t.Errorf("lost are %v of a hub that never counted", lost)
	}
	hub.broken = errors.New("no answer")
	if lost, err := NewEpochs(hub, "m").Lost(t.Context(), 3); lost || err == nil {
		t.Errorf("a hub that does not answer lost it: %t, %v", lost, err)
	}
	var none *Epochs
	none.RegisterLargest(nil)
	if number := begin(t, none); number != 0 || lostOf(t, none, 3) != nil {
		t.Errorf("where nobody counts: %d", number)
	}
}

func TestEpochs_ShareOneNumberAmongConcurrentCalls(t *testing.T) {
	hub := newCountingHub(t, leaseOf(""))
	e := NewEpochs(hub, "m")
	e.mu.Lock() // as while another one is begun
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			if _, err := e.Begin(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	for e.calls.Load() < 50 {
		runtime.Gosched()
	}
	e.mu.Unlock()
	group.Wait()
	if hub.writes != 1 {
		t.Errorf("50 concurrent calls cost %d writes", hub.writes)
	}
}

func TestCount_RoundTrips(t *testing.T) {
	for text, want := range map[string]string{"": "0", "7": "7", "8,6-7": "8,6-7", "9,1-2,5-8": "9,1-2,5-8", "x": "0", "8,6": "0", "8,6-x": "0", "8,x-7": "0"} {
		if got := countIn(text).text(); got != want {
			t.Errorf("%q is read as %q, want %q", text, got, want)
		}
	}
	c := count{}
	for range maxSpans + 2 {
		c = c.after(c.current + 1)
	}
	if len(c.lost) != maxSpans || !c.lacks(1) || !c.lacks(2) || c.lacks(c.current) {
		t.Errorf("after many restores it is %s", c.text())
	}
	object := &metav1.ObjectMeta{Annotations: map[string]string{EpochAnnotation: fmt.Sprintf("%d/uid", 12)}}
	if got := NumberOn(object); got != 12 || NumberOn(&metav1.ObjectMeta{}) != 0 {
		t.Errorf("the number is %d", got)
	}
}
