// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"context"
	"runtime"
	"runtime/metrics"
	"time"
)

const (
	// busyPerCPU is how many goroutines may wait for each CPU. Each of them runs for some ten
	// microseconds.
	busyPerCPU = 32
	// paceCheck is the interval of checks whether goroutines wait, paceMost how long one request is
	// delayed.
	paceCheck = time.Millisecond
	paceMost  = 10 * time.Millisecond
)

// pace delays requests to members while goroutines wait for a CPU. A few callers who begin to watch a
// thousand members each could start thousands of requests at once. Everything else would then wait for
// all of them at each step, such as the login of another caller. Requests of views pass one by one, and
// at least one every paceMost, so that a gateway that is always busy serves views too.
type pace struct {
	busy func() bool
	// turn is held by the next request.
	turn chan struct{}
}

func newPace(busy func() bool) *pace {
	return &pace{busy: busy, turn: make(chan struct{}, 1)}
}

// await returns when the next request may start.
func (p *pace) await(ctx context.Context) error {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for range paceMost / paceCheck {
		if !p.busy() {
			return nil
		}
		select {
		case <-time.After(paceCheck):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// runnable is the name of a metric, the number of goroutines that wait for a CPU.
const runnable = "/sched/goroutines/runnable:goroutines"

// isBusy is true while goroutines wait for a CPU.
func isBusy() bool {
	sample := []metrics.Sample{{Name: runnable}}
	metrics.Read(sample)
	value := sample[0].Value
	return value.Kind() == metrics.KindUint64 && value.Uint64() > busyPerCPU*uint64(runtime.GOMAXPROCS(0))
}
