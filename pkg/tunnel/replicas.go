// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"sync"
)

// errSameReplica is why an agent closes a session: it holds another one to the same
// gateway, and a second to that is no help when the gateway ends.
var errSameReplica = errors.New("another tunnel of this agent ends in the same gateway")

// replicas is what an agent knows of the gateways, from what they tell, and in which
// of them its sessions end.
type replicas struct {
	// slots is how many sessions the agent keeps, if there are as many gateways.
	slots int

	// mu guards the fields below it.
	mu    sync.Mutex
	count int
	// members is how many there are in the fleet, as one of them told last.
	members int
	// taken are the gateways' names, by slot.
	taken map[int]string
	// unheard are slots with a session whose gateway has not told its name yet.
	unheard map[int]bool
	// changed is closed, and made anew, with every change.
	changed chan struct{}
}

func newReplicas(slots int) *replicas {
	return &replicas{slots: slots, taken: map[int]string{}, unheard: map[int]bool{}, changed: make(chan struct{})}
}

// arrive says that the slot has a new session.
func (r *replicas) arrive(slot int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unheard[slot] = true
}

// claim says that the slot's session ends in the gateway that told info. An error says
// that it should not.
func (r *replicas) claim(slot int, info Info) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.unheard, slot)
	r.members = info.Members
	if info.Replica == "" {
		return nil
	}
	defer r.tell()
	r.count = info.Replicas
	if r.heldByOther(slot, info.Replica) {
		return errSameReplica
	}
	r.taken[slot] = info.Replica
	return nil
}

// isFree says whether the slot could have a session to that gateway. One that it is not
// in already may be another slot's which has not heard so yet: then it is not free. Who has a
// session keeps it until all others have one, too: where one of them comes to is not known
// before, and two in one gateway would leave the other without.
func (r *replicas) isFree(slot int, replica string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	own, held := r.taken[slot]
	if own == replica && held {
		return true
	}
	if held && len(r.taken) < min(r.slots, r.count) {
		return false
	}
	for other := range r.unheard {
		if other != slot {
			return false
		}
	}
	return !r.heldByOther(slot, replica)
}

func (r *replicas) heldByOther(slot int, replica string) bool {
	for other, name := range r.taken {
		if other != slot && name == replica {
			return true
		}
	}
	return false
}

// held is true while a slot has a session.
func (r *replicas) held() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.taken)+len(r.unheard) > 0
}

// fleet is how many members there are, 0 if nobody has told.
func (r *replicas) fleet() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.members
}

// leave says that the slot has no session.
func (r *replicas) leave(slot int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.tell()
	delete(r.taken, slot)
	delete(r.unheard, slot)
}

func (r *replicas) tell() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// await returns when there is a gateway for the slot: the first has always one, unless
// another slot has taken the only one. It returns false if ctx ended before.
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

// states makes one state of those of all slots.
type states struct {
	report func(State)

	// mu guards bySlot and is held during reports, which keeps them in order.
	mu     sync.Mutex
	bySlot map[int]State
}

// set reports the agent's state after that of one slot has changed: it is connected
// if one of them is.
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
