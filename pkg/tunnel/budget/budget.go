// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package budget limits the unread data of all streams of a process. Each stream has a window, but
// many full windows together would be too much. Both multiplexers use it.
//
// It is the only part that their streams share. A native stream copies frames into pooled chunks
// and wakes its reader with a condition under the stream's own lock. A Konnectivity connection
// keeps gRPC's reference-counted buffers and waits for several channels at once. So each has its
// own inbox and deadline.
package budget

import "sync/atomic"

// Floor is how many bytes a stream may hold even when a budget is used up.
const Floor = 64 << 10

// Budget limits the unread bytes of streams. Any number of sessions can share it. Once it is used
// up, a stream that holds more than [Floor] accepts no more data; the others stay.
type Budget struct {
	limit int64
	used  atomic.Int64
}

// New returns a budget of limit bytes.
func New(limit int64) *Budget { return &Budget{limit: limit} }

// Used is the number of bytes that streams hold now.
func (b *Budget) Used() int64 { return b.used.Load() }

// Add counts bytes that arrived, or that were read if n is negative, and says whether the total is
// within the budget.
func (b *Budget) Add(n int) (within bool) { return b.used.Add(int64(n)) <= b.limit }

// Exceeded is true if streams hold more than the budget.
func (b *Budget) Exceeded() bool { return b.used.Load() > b.limit }

// Relaxed is true if less than half is in use: windows may grow.
func (b *Budget) Relaxed() bool { return b.used.Load() < b.limit/2 }
