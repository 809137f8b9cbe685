// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package budget bounds what streams hold for readers who do not read, over all streams of
// a process: many that each keep to their window would be too much together. Both carriers
// count by it.
//
// It is all that the halves of their streams have in common. A native stream copies
// frames into pooled chunks and wakes its reader by a condition under the stream's own
// lock; a Konnectivity connection keeps the buffers of gRPC, counted by reference, and
// waits for several channels at once. So each has an inbox and a deadline of its own.
package budget

import "sync/atomic"

// Floor is how many bytes a stream may hold even when a budget is used up.
const Floor = 64 << 10

// Budget bounds the bytes that streams hold unread. One may serve any number of sessions.
// Once it is used up, a stream that holds more than [Floor] takes no more; the others stay.
type Budget struct {
	limit int64
	used  atomic.Int64
}

// New makes a budget of so many bytes.
func New(limit int64) *Budget { return &Budget{limit: limit} }

// Used is how many bytes streams hold now.
func (b *Budget) Used() int64 { return b.used.Load() }

// Add counts bytes that arrived, or that are gone when n is negative, and says whether
// that is within the budget.
func (b *Budget) Add(n int) (within bool) { return b.used.Add(int64(n)) <= b.limit }

// Exceeded says that more is held than the budget has.
func (b *Budget) Exceeded() bool { return b.used.Load() > b.limit }

// Relaxed says that less than half is in use: windows may grow.
func (b *Budget) Relaxed() bool { return b.used.Load() < b.limit/2 }
