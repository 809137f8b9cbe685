// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"slices"
	"sync"
	"time"
)

// agentSessions are an agent's sessions: the one in use and those that it replaced. A replaced session is
// closed once its streams have ended.
type agentSessions struct {
	// mu guards the following fields.
	mu       sync.Mutex
	current  Multiplexer
	replaced []Multiplexer
	// closing counts the replaced sessions that have not ended.
	closing sync.WaitGroup
}

// drainPoll is how often a drain checks whether the last stream has ended.
const drainPoll = 50 * time.Millisecond

// replace makes next the session in use, and closes the previous one once it is idle.
func (a *agentSessions) replace(next Multiplexer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current != nil {
		old := a.current
		a.replaced = slices.DeleteFunc(a.replaced, isDone)
		a.replaced = append(a.replaced, old)
		a.closing.Go(func() { closeWhenIdle(old) })
	}
	a.current = next
}

// retire closes the session in use once it is idle, without a replacement.
func (a *agentSessions) retire() {
	a.replace(nil)
}

// serves is true if there is a session in use that has not ended.
func (a *agentSessions) serves() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.current != nil && !isDone(a.current)
}

func (a *agentSessions) all() []Multiplexer {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := slices.Clone(a.replaced)
	if a.current != nil {
		all = append(all, a.current)
	}
	return slices.DeleteFunc(all, isDone)
}

// drain waits until no session has a stream, or ctx ends.
func (a *agentSessions) drain(ctx context.Context) {
	poll(ctx.Done(), func() bool {
		return !slices.ContainsFunc(a.all(), func(c Multiplexer) bool { return c.Streams() > 0 })
	})
}

// closeWhenIdle closes a session when its streams have ended.
func closeWhenIdle(c Multiplexer) {
	poll(c.Done(), func() bool { return c.Streams() == 0 })
	_ = c.Close()
}

func isDone(c Multiplexer) bool {
	select {
	case <-c.Done():
		return true
	default:
		return false
	}
}

// poll returns when done is true, or givenUp is closed.
func poll(givenUp <-chan struct{}, done func() bool) {
	ticker := time.NewTicker(drainPoll)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ticker.C:
		case <-givenUp:
			return
		}
	}
}
