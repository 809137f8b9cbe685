// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// answerWithin is how long a live peer may take to answer a probe; tripsWithin is the limit in
	// round trips where those are long.
	answerWithin = 1500 * time.Millisecond
	tripsWithin  = 4
	// probeSlack is how late this side may check for the answer and still trust the result. If it
	// checks later, this process itself was not running.
	probeSlack = 250 * time.Millisecond
	// probeBacklog is how many unsent bytes still allow an answer in that time. On a slow
	// connection, the probe is sent after them.
	probeBacklog = 64 << 10
)

// probes check whether the peer lives. Only one probe is in flight, for all callers: a peer ends a
// session that pings too often.
type probes struct {
	// mu guards asking.
	mu sync.Mutex
	// asking is closed when the probe in flight is answered or has timed out; nil if there is none.
	asking chan struct{}
	// unanswered is the number of reads at the time of an unanswered probe, plus one. It is 0 if
	// there was none, and counts until anything arrives.
	unanswered atomic.Int64
}

// Answers probes the peer, and reports whether an answer, or anything else, arrived in 1.5 s, or in
// four round trips if those take longer. If nothing arrives, the peer or the connection has
// stopped. The session continues, because the peer may recover: [Multiplexer.Unresponsive] is true until
// then. If so much data is queued that an answer may take longer, or if ctx ends first, the peer
// counts as alive.
func (c *Multiplexer) Answers(ctx context.Context) bool {
	if c.Unresponsive() {
		return false
	}
	q := &c.probes
	q.mu.Lock()
	asked := q.asking
	if asked == nil {
		asked = make(chan struct{})
		q.asking = asked
		c.ask(asked)
	}
	q.mu.Unlock()
	select {
	case <-asked:
	case <-ctx.Done():
	case <-c.done:
	}
	return !c.Unresponsive()
}

// ask starts a probe that ends with an answer or as unanswered.
func (c *Multiplexer) ask(asked chan struct{}) {
	before := c.wire.reads.Load()
	telling := c.wire.sent.Load()-c.wire.answered.Load() <= probeBacklog
	c.ping()
	within, began := max(answerWithin, tripsWithin*c.roundTrip()), time.Now()
	time.AfterFunc(within, func() {
		c.probes.mu.Lock()
		defer c.probes.mu.Unlock()
		if telling && c.wire.reads.Load() == before && time.Since(began) <= within+probeSlack {
			c.probes.unanswered.Store(before + 1)
		}
		c.probes.asking = nil
		close(asked)
	})
}

// Unresponsive is true if the peer did not answer a probe, and nothing has arrived since.
func (c *Multiplexer) Unresponsive() bool {
	unanswered := c.probes.unanswered.Load()
	return unanswered != 0 && c.wire.reads.Load() == unanswered-1
}
