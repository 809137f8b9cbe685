// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"sync"
	"time"
)

const (
	// expectedFor is how long after its own start a gateway expects every member. No agent with a
	// working machine and network waits longer between two attempts.
	expectedFor = reconnectCeiling

	// reconnectWithin is how long a member that lost its session while this gateway ran is expected
	// to reconnect. A live agent retries within a second, and three times within seven. Callers
	// wait that long for an agent that does not return.
	reconnectWithin = 10 * time.Second
)

// departures are the members that were lost recently.
type departures struct {
	// began is when the gateway started: it does not know yet which members are disconnected.
	began time.Time

	// mu guards the following fields.
	mu sync.Mutex
	// lost holds the members that were lost after since, and before those of the period before it.
	// Neither grows with members that never reconnect.
	since        time.Time
	lost, before map[string]time.Time
}

// Expected is true if the agent of a disconnected member probably reconnects within seconds: it was
// connected recently to this gateway or to one that this gateway knows, or this gateway itself has
// just started. Callers should not wait for other members.
func (r *Registry) Expected(member string) bool {
	return r.departures.recent(member, time.Now())
}

// Departed is when the member last lost a session here, or when another known gateway last withdrew
// it. It is zero if that is no longer known; it is known for at least as long as such a session may
// live on for its streams. Older connections may use that session, and end when its drain ends.
func (r *Registry) Departed(member string) time.Time {
	return r.departures.last(member)
}

// note records that a member has lost a session.
func (d *departures) note(member string, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Sub(d.since) > expectedFor {
		d.since, d.before, d.lost = now, d.lost, map[string]time.Time{}
	}
	d.lost[member] = now
}

func (d *departures) recent(member string, now time.Time) bool {
	return now.Sub(d.began) <= expectedFor || now.Sub(d.last(member)) <= reconnectWithin
}

func (d *departures) last(member string) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if lost, known := d.lost[member]; known {
		return lost
	}
	return d.before[member]
}
