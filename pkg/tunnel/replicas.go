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

// errFull is why an agent that moves a session tries another gateway.
var errFull = errors.New("the gateway has more tunnels than others")

// isUnsuitable is true if a session works, but should end in another gateway.
func isUnsuitable(err error) bool { return errors.Is(err, errSameReplica) || errors.Is(err, errFull) }

// replicas is what an agent knows about the gateways from their messages, and which of its sessions
// ends in which of them.
type replicas struct {
	// sessions is how many sessions the agent keeps, if there are as many gateways.
	sessions int

	// mu guards the following fields.
	mu    sync.Mutex
	count int
	// members is the last reported number of members in the fleet.
	members int
	// claimed are the gateways' names, by the index of the session.
	claimed map[int]string
	// unnamed are sessions whose gateway has not sent its name yet.
	unnamed map[int]bool
	// changed is closed, and replaced, with every change.
	changed chan struct{}
}

func newReplicas(sessions int) *replicas {
	return &replicas{sessions: sessions, claimed: map[int]string{}, unnamed: map[int]bool{}, changed: make(chan struct{})}
}

// arrive records that a session with this index was established.
func (r *replicas) arrive(index int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unnamed[index] = true
}

// claim records that the session ends in the gateway that sent info. An error means that the session
// should be closed. A session that moves should not end in a full gateway.
func (r *replicas) claim(index int, info Info, moves bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.unnamed, index)
	r.members = info.Members
	if info.Replica == "" {
		return nil
	}
	defer r.notify()
	r.count = info.Replicas
	if r.isClaimedByOther(index, info.Replica) {
		return errSameReplica
	}
	if moves && info.Full {
		return errFull
	}
	r.claimed[index] = info.Replica
	return nil
}

// isFree is true if the session may end in that gateway. A gateway is not free while
// another session may end in it, because its name has not arrived. A session stays where it is
// until all others are established: it is not known where another one will end, and two in
// one gateway would leave the other gateway without.
func (r *replicas) isFree(index int, replica string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	own, claimed := r.claimed[index]
	if own == replica && claimed {
		return true
	}
	if claimed && len(r.claimed) < min(r.sessions, r.count) {
		return false
	}
	for other := range r.unnamed {
		if other != index {
			return false
		}
	}
	return !r.isClaimedByOther(index, replica)
}

// isOwn is true if the session ends in that gateway already.
func (r *replicas) isOwn(index int, replica string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	own, claimed := r.claimed[index]
	return claimed && own == replica
}

func (r *replicas) isClaimedByOther(index int, replica string) bool {
	for other, name := range r.claimed {
		if other != index && name == replica {
			return true
		}
	}
	return false
}

// hasSession is true while any session is established.
func (r *replicas) hasSession() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.claimed)+len(r.unnamed) > 0
}

// fleet is the number of members, 0 if unknown.
func (r *replicas) fleet() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.members
}

// leave records that the session has ended.
func (r *replicas) leave(index int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.notify()
	delete(r.claimed, index)
	delete(r.unnamed, index)
}

func (r *replicas) notify() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// await returns when there is a gateway for the session. The first session always has one, unless
// another session has taken the only one. waited is true if there was none at first, ok is false if
// ctx has ended.
func (r *replicas) await(ctx context.Context, index int) (waited, ok bool) {
	for ; ; waited = true {
		r.mu.Lock()
		room := r.count > len(r.claimed) || index == 0 && len(r.claimed) == 0
		changed := r.changed
		r.mu.Unlock()
		if room {
			return waited, true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return waited, false
		}
	}
}

// states combines the states of all sessions.
type states struct {
	report func(State)

	// mu guards byIndex and is held during reports, which keeps them in order.
	mu      sync.Mutex
	byIndex map[int]State
}

// set reports the agent's state after the state of a session has changed: it is connected if any session is.
func (s *states) set(index int, state State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byIndex[index] = state
	merged := state
	for _, other := range s.byIndex {
		if other.Connected && (!merged.Connected || other.Path == ViaPort) {
			merged = other
		}
	}
	s.report(merged)
}
