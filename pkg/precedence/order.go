// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package precedence

import (
	"context"
	"slices"
	"sync"
)

// few is how many writes of one urgency are under way while more urgent ones are.
const few = 8

// Urgency says who waits for a write, the most urgent first.
type Urgency int

const (
	// Entry is what lets a member in. Nothing is more urgent, so it never waits.
	Entry Urgency = iota
	// Decision is what everything else follows from: snapshots, bindings, conditions of
	// placements.
	Decision
	// Delivery is what members get.
	Delivery
	// Account tells how far members are.
	Account
	urgencies
)

// Order lets writes begin in the order of their urgency. All clients whose writes are to be
// ordered share one. The zero value is ready for use.
type Order struct {
	mu sync.Mutex
	// underway counts writes that have begun and not ended, waiting has those that have
	// not begun, the first first: a channel of each is closed when it may.
	underway [urgencies]int
	waiting  [urgencies][]chan struct{}
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

// queue returns a channel that is closed as soon as a write may begin; it counts as under
// way from then on.
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
	o.underway[u]--
	o.admit()
}

// withdraw takes back a write that is not wanted any more, whether its turn has come or not.
func (o *Order) withdraw(u Urgency, turn chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if i := slices.Index(o.waiting[u], turn); i >= 0 {
		o.waiting[u] = slices.Delete(o.waiting[u], i, i+1)
		return
	}
	o.underway[u]--
	o.admit()
}

// admit begins what may begin. It must be called with mu held.
func (o *Order) admit() {
	urgent := 0
	for u := range o.waiting {
		for len(o.waiting[u]) > 0 && (urgent == 0 || o.underway[u] < few) {
			close(o.waiting[u][0])
			o.waiting[u] = o.waiting[u][1:]
			o.underway[u]++
		}
		urgent += o.underway[u]
	}
}
