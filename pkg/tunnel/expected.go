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

// sessionChanges are the members whose sessions have changed recently: most of them were lost.
type sessionChanges struct {
	// began is when the gateway started: it does not know yet which members are disconnected.
	began time.Time

	// mu guards the following fields.
	mu sync.Mutex
	// lost holds the members whose sessions changed after since, and before those of the period
	// before it. Neither grows with members that never reconnect.
	since        time.Time
	lost, before map[string]time.Time
}

// Expected is true if the agent of a disconnected member probably reconnects within seconds: it was
// connected recently to this gateway or to one that this gateway knows, or this gateway itself has
// just started. Callers should not wait for other members.
func (r *Registry) Expected(member string) bool {
	return r.sessionChanges.recent(member, time.Now())
}

// LastSessionChange is when the sessions that lead to the member last changed: it got or lost one, here or at
// another known gateway, or one did not respond to a probe. It is zero if that is no longer known; it
// is known for at least as long as a lost session may live on for its streams. Older connections may
// use a session that is about to end, or a slower one than new connections do.
func (r *Registry) LastSessionChange(member string) time.Time {
	return r.sessionChanges.last(member)
}

// note records that the sessions of a member have changed.
func (d *sessionChanges) note(member string, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Sub(d.since) > expectedFor {
		d.since, d.before, d.lost = now, d.lost, map[string]time.Time{}
	}
	d.lost[member] = now
}

func (d *sessionChanges) recent(member string, now time.Time) bool {
	return now.Sub(d.began) <= expectedFor || now.Sub(d.last(member)) <= reconnectWithin
}

func (d *sessionChanges) last(member string) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if lost, known := d.lost[member]; known {
		return lost
	}
	return d.before[member]
}
