// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fleetgate.io/fleetgate/pkg/apiserver/fleetview/splice"
)

func TestMemory_StaysWithinBudget(t *testing.T) {
	of := func(n int) splice.Identity {
		return splice.Identity{Namespace: "shop", Name: fmt.Sprint("pod-", n), UID: fmt.Sprintf("00000000-0000-0000-0000-%012d", n)}
	}
	b := &budget{limit: 3 * int64(len("shop/pod-1")+entryCost)}
	m := newMemory(b, true)
	for n := range 3 {
		if m.add(of(n)) {
			t.Errorf("%d was not sent before", n)
		}
	}
	if !m.add(of(1)) {
		t.Error("it was sent before")
	}
	m.remove(of(0))
	m.round++
	m.add(of(2))
	if diff := cmp.Diff([]splice.Identity{of(1)}, m.forget(false)); diff != "" {
		t.Errorf("what the last list has not: %s", diff)
	}
	for n := range 4 {
		m.add(of(n))
	}
	if m.whole || b.used.Load() != 0 {
		t.Errorf("it is over its limit: whole %v, %d bytes", m.whole, b.used.Load())
	}
}

// The counted cost of an object is at least its real memory.
func TestMemory_CountsAtLeastTheRealCost(t *testing.T) {
	const objects = 100_000
	b := &budget{limit: 1 << 40}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	m := newMemory(b, true)
	for n := range objects {
		m.add(splice.Identity{Namespace: "namespace-of-a-team", Name: fmt.Sprintf("deployment-%d-5d9c7b-x2x9z", n)})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	taken, counted := (int64(after.HeapAlloc)-int64(before.HeapAlloc))/objects, b.used.Load()/objects
	t.Logf("%d bytes an object, %d are counted", taken, counted)
	if taken > counted || counted > 150 {
		t.Errorf("an object takes %d bytes, %d are counted", taken, counted)
	}
	runtime.KeepAlive(m)
}
