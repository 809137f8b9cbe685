// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package native

import "sync/atomic"

const (
	// sessionBudget bounds what all streams of a session hold unread.
	sessionBudget = 64 << 20
	// budgetFloor is what a stream may hold even when a budget is used up.
	budgetFloor = 64 << 10
)

// Budget bounds the bytes that streams hold for readers who do not read. One may
// serve any number of sessions. Once it is used up, a stream to which data arrives
// and that holds more than 64 KiB is reset; the others stay.
type Budget struct {
	limit int64
	used  atomic.Int64
}

// NewBudget makes a budget of so many bytes.
func NewBudget(limit int64) *Budget { return &Budget{limit: limit} }

// Used is how many bytes streams hold now.
func (b *Budget) Used() int64 { return b.used.Load() }

func (b *Budget) take(n int) (within bool) { return b.used.Add(int64(n)) <= b.limit }
func (b *Budget) give(n int)               { b.used.Add(-int64(n)) }

// relaxed says that less than half is in use: windows may grow.
func (b *Budget) relaxed() bool { return b.used.Load() < b.limit/2 }

// budgets are those that a stream's bytes count for.
type budgets struct{ session, process *Budget }

func (b budgets) take(n int) (within bool) {
	within = b.session.take(n)
	if b.process != nil && !b.process.take(n) {
		return false
	}
	return within
}

func (b budgets) give(n int) {
	b.session.give(n)
	if b.process != nil {
		b.process.give(n)
	}
}

func (b budgets) relaxed() bool {
	return b.session.relaxed() && (b.process == nil || b.process.relaxed())
}
