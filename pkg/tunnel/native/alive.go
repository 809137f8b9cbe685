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
	// responseTimeout is how long a live peer may take to respond to a probe; tripsWithin is the limit in
	// round trips where those are long.
	responseTimeout = 1500 * time.Millisecond
	tripsWithin     = 4
	// probeSlack is how late this side may check for the response and still trust the result. If it
	// checks later, this process itself was not running.
	probeSlack = 250 * time.Millisecond
	// probeCheck is the interval of checks for the response.
	probeCheck = 100 * time.Millisecond
	// probeBacklog is how many unsent bytes still allow a response in that time. On a slow
	// connection, the probe is sent after them.
	probeBacklog = 64 << 10
)

// probes check whether the peer lives. Only one probe is in flight, for all callers: a peer ends a
// session that pings too often.
type probes struct {
	// mu guards inFlight.
	mu sync.Mutex
	// inFlight is closed when the probe in flight has a result; nil if there is none.
	inFlight chan struct{}
	// noResponse is the number of reads at the time of a probe without a response, plus one. It is 0 if
	// there was none, and counts until anything arrives.
	noResponse atomic.Int64
}

// Responds probes the peer, and reports whether a response, or anything else, arrived in 1.5 s, or in
// four round trips if those take longer. It returns within 0.1 s after that arrived. If nothing arrives,
// the peer or the connection has stopped. The session continues, because the peer may recover: [Multiplexer.Unresponsive] is true until
// then. If so much data is queued that a response may take longer, or if ctx ends first, the peer
// counts as alive.
func (c *Multiplexer) Responds(ctx context.Context) bool {
	if c.Unresponsive() {
		return false
	}
	q := &c.probes
	q.mu.Lock()
	probed := q.inFlight
	if probed == nil {
		probed = make(chan struct{})
		q.inFlight = probed
		c.probe(probed)
	}
	q.mu.Unlock()
	select {
	case <-probed:
	case <-ctx.Done():
	case <-c.done:
	}
	return !c.Unresponsive()
}

// probe starts a probe, and closes probed when it has a result.
func (c *Multiplexer) probe(probed chan struct{}) {
	before := c.wire.reads.Load()
	reliable := c.wire.sent.Load()-c.wire.acked.Load() <= probeBacklog
	c.ping()
	within, began := max(responseTimeout, tripsWithin*c.roundTrip()), time.Now()
	var check func()
	check = func() {
		c.probes.mu.Lock()
		defer c.probes.mu.Unlock()
		silent, took := c.wire.reads.Load() == before, time.Since(began)
		if silent && took < within {
			time.AfterFunc(min(probeCheck, within-took), check)
			return
		}
		if silent && reliable && took <= within+probeSlack {
			c.probes.noResponse.Store(before + 1)
		}
		c.probes.inFlight = nil
		close(probed)
	}
	time.AfterFunc(probeCheck, check)
}

// Unresponsive is true if the peer did not respond to a probe, and nothing has arrived since.
func (c *Multiplexer) Unresponsive() bool {
	noResponse := c.probes.noResponse.Load()
	return noResponse != 0 && c.wire.reads.Load() == noResponse-1
}
