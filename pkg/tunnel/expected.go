// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"sync"
	"time"
)

const (
	// expectedFor is how long after its own start a gateway expects every member: no agent
	// whose machine and network are well waits longer between two attempts.
	expectedFor = reconnectCeiling

	// backWithin is how long a member is expected back that lost its session while this
	// gateway was there: an agent that lives tries again within a second, and three times
	// within seven. Whose agent is gone keeps people waiting for as long.
	backWithin = 10 * time.Second
)

// departures are the members that were lost a moment ago.
type departures struct {
	// began is when the gateway did: it does not know yet who is away then.
	began time.Time

	// mu guards the fields below it.
	mu sync.Mutex
	// lost holds who was lost since the time of that name, and before who was lost in the
	// period before it: neither grows with members that never come back.
	since        time.Time
	lost, before map[string]time.Time
}

// Expected says whether the agent of a member that is not connected may well be back in
// seconds: it was connected to this gateway, or to one that this gateway knows, a moment
// ago, or this gateway itself has begun a moment ago. Who asks for another member does
// better not to wait for it.
func (r *Registry) Expected(member string) bool {
	return r.departures.recent(member, time.Now())
}

// Departed is when the member last lost a session here, or was last withdrawn by a gateway
// that this one knows; zero if that is not known any more, which it is for as long as such a
// session may live on for its streams. Connections that were made before may lead through
// that session: they last no longer than it drains.
func (r *Registry) Departed(member string) time.Time {
	return r.departures.last(member)
}

// note remembers that a member has lost a session.
func (d *departures) note(member string, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Sub(d.since) > expectedFor {
		d.since, d.before, d.lost = now, d.lost, map[string]time.Time{}
	}
	d.lost[member] = now
}

func (d *departures) recent(member string, now time.Time) bool {
	return now.Sub(d.began) <= expectedFor || now.Sub(d.last(member)) <= backWithin
}

func (d *departures) last(member string) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if lost, known := d.lost[member]; known {
		return lost
	}
	return d.before[member]
}
