// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"sync"
)

// errSameReplica is why an agent closes a session: it has another one to the same gateway, and a
// second one would not help when that gateway stops.
var errSameReplica = errors.New("another tunnel of this agent ends in the same gateway")

// replicas is what an agent knows about the gateways from their messages, and which of its sessions
// ends in which of them.
type replicas struct {
	// slots is how many sessions the agent keeps, if there are as many gateways.
	slots int

	// mu guards the following fields.
	mu    sync.Mutex
	count int
	// members is the last reported number of members in the fleet.
	members int
	// taken are the gateways' names, by slot.
	taken map[int]string
	// unnamed are slots with a session whose gateway has not sent its name yet.
	unnamed map[int]bool
	// changed is closed, and replaced, with every change.
	changed chan struct{}
}

func newReplicas(slots int) *replicas {
	return &replicas{slots: slots, taken: map[int]string{}, unnamed: map[int]bool{}, changed: make(chan struct{})}
}

// arrive records that the slot has a new session.
func (r *replicas) arrive(slot int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unnamed[slot] = true
}

// claim records that the slot's session ends in the gateway that sent info. An error means that the
// session should be closed.
func (r *replicas) claim(slot int, info Info) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.unnamed, slot)
	r.members = info.Members
	if info.Replica == "" {
		return nil
	}
	defer r.notify()
	r.count = info.Replicas
	if r.isTakenByOther(slot, info.Replica) {
		return errSameReplica
	}
	r.taken[slot] = info.Replica
	return nil
}

// isFree is true if the slot may have a session to that gateway. A gateway is not free while
// another slot's session may end in it, because its name has not arrived. A slot keeps its session
// until all others have one: it is not known where another slot's next session will end, and two in
// one gateway would leave the other gateway without.
func (r *replicas) isFree(slot int, replica string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	own, taken := r.taken[slot]
	if own == replica && taken {
		return true
	}
	if taken && len(r.taken) < min(r.slots, r.count) {
		return false
	}
	for other := range r.unnamed {
		if other != slot {
			return false
		}
	}
	return !r.isTakenByOther(slot, replica)
}

func (r *replicas) isTakenByOther(slot int, replica string) bool {
	for other, name := range r.taken {
		if other != slot && name == replica {
			return true
		}
	}
	return false
}

// hasSession is true while any slot has a session.
func (r *replicas) hasSession() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.taken)+len(r.unnamed) > 0
}

// fleet is the number of members, 0 if unknown.
func (r *replicas) fleet() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.members
}

// leave records that the slot has no session.
func (r *replicas) leave(slot int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.notify()
	delete(r.taken, slot)
	delete(r.unnamed, slot)
}

func (r *replicas) notify() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// await returns when there is a gateway for the slot. The first slot always has one, unless another
// slot has taken the only one. It returns false if ctx ended before.
func (r *replicas) await(ctx context.Context, slot int) bool {
	for {
		r.mu.Lock()
		room := r.count > len(r.taken) || slot == 0 && len(r.taken) == 0
		changed := r.changed
		r.mu.Unlock()
		if room {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// states combines the states of all slots.
type states struct {
	report func(State)

	// mu guards bySlot and is held during reports, which keeps them in order.
	mu     sync.Mutex
	bySlot map[int]State
}

// set reports the agent's state after a slot's state has changed: it is connected if any slot is.
func (s *states) set(slot int, state State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bySlot[slot] = state
	merged := state
	for _, other := range s.bySlot {
		if other.Connected && (!merged.Connected || other.Way == ViaPort) {
			merged = other
		}
	}
	s.report(merged)
}
