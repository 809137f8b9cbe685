// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import "sync"

// listeners notifies subscribers which members are connected. It reports levels: the registry's state
// at the time of the call, so an old change never follows a newer one.
type listeners struct {
	// mu guards the following fields and is held during calls, which keeps them in order.
	mu   sync.Mutex
	next int
	subs map[int]subscriber
	// reported holds the members that were last reported as connected.
	reported map[string]bool
}

// subscriber is called when a member is connected or disconnected, and with repeats also when a
// connected member gets another session, which new dials use.
type subscriber struct {
	changed func(member string, connected bool)
	repeats bool
}

func (l *listeners) add(s subscriber) func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.subs == nil {
		l.subs = map[int]subscriber{}
	}
	id := l.next
	l.next++
	l.subs[id] = s
	for member := range l.reported {
		s.changed(member, true)
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.subs, id)
	}
}

// notify reports the member's state if it has changed.
func (l *listeners) notify(member string, connected func(member string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := connected(member)
	if now == l.reported[member] {
		return
	}
	if l.reported == nil {
		l.reported = map[string]bool{}
	}
	if now {
		l.reported[member] = true
	} else {
		delete(l.reported, member)
	}
	for _, s := range l.subs {
		s.changed(member, now)
	}
}

// repeat reports a connected member again to those who need that.
func (l *listeners) repeat(member string, connected func(member string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.reported[member] || !connected(member) {
		return
	}
	for _, s := range l.subs {
		if s.repeats {
			s.changed(member, true)
		}
	}
}
