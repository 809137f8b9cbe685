// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package writepriority

import (
	"context"
	"slices"
	"sync"
	"time"
)

// lull is how long no more urgent write must have happened before all waiting ones may begin:
// urgent writes come in a stream with gaps.
const lull = 100 * time.Millisecond

// Urgency is the priority of a write, the most urgent first.
type Urgency int

const (
	// Entry registers a member. Nothing is more urgent, so it never waits.
	Entry Urgency = iota
	// Decision is what everything else follows from: snapshots, bindings.
	Decision
	// Delivery is what members get.
	Delivery
	// Account reports progress.
	Account
	// Extra is additional data of a member: a profile for other products, the gateway's account on
	// it.
	Extra
	urgencies
)

// few is how many writes of an urgency are in flight while more urgent ones are.
func (u Urgency) few() int {
	if u == Account {
		return 8 // They may be late by at most two seconds.
	}
	return 1
}

// Order starts writes in the order of their urgency. All clients whose writes are to be ordered
// share one. The zero value is ready for use.
type Order struct {
	mu sync.Mutex
	// inFlight counts writes that have begun and not ended. waiting has those that have not begun,
	// the oldest first: a channel of each is closed when it may begin.
	inFlight [urgencies]int
	waiting  [urgencies][]chan struct{}
	// ended is when the latest write ended.
	ended [urgencies]time.Time
}

// pass makes a write when it may begin.
func (o *Order) pass(ctx context.Context, u Urgency, write func() error) error {
	if err := o.enter(ctx, u); err != nil {
		return err
	}
	defer o.leave(u)
	return write()
}

func (o *Order) enter(ctx context.Context, u Urgency) error {
	turn := o.queue(u)
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		o.withdraw(u, turn)
		return ctx.Err()
	}
}

// queue returns a channel that is closed as soon as a write may begin; it counts as in flight from
// then on.
func (o *Order) queue(u Urgency) chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	turn := make(chan struct{})
	o.waiting[u] = append(o.waiting[u], turn)
	o.admit()
	return turn
}

func (o *Order) leave(u Urgency) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.inFlight[u]--
	o.ended[u] = time.Now()
	o.admit()
}

// withdraw cancels a write, whether it has already been admitted or not.
func (o *Order) withdraw(u Urgency, turn chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if i := slices.Index(o.waiting[u], turn); i >= 0 {
		o.waiting[u] = slices.Delete(o.waiting[u], i, i+1)
		return
	}
	o.inFlight[u]--
	o.admit()
}

// admit starts writes that may begin. If some have to wait, a few are in flight, which call admit
// when they end. It must be called with mu held.
func (o *Order) admit() {
	urgent, now := false, time.Now()
	for u := range urgencies {
		for len(o.waiting[u]) > 0 && (!urgent || o.inFlight[u] < u.few()) {
			close(o.waiting[u][0])
			o.waiting[u] = o.waiting[u][1:]
			o.inFlight[u]++
		}
		urgent = urgent || o.inFlight[u] > 0 || now.Sub(o.ended[u]) < lull
	}
}
