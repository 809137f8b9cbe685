// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"slices"
	"sync"
	"time"
)

// agentSessions are an agent's sessions: the one in use and those that were retired. A retired session
// is closed once its streams have ended.
type agentSessions struct {
	// mu guards the following fields.
	mu      sync.Mutex
	current Multiplexer
	retired []Multiplexer
	// closing counts the retired sessions that have not ended.
	closing sync.WaitGroup
}

// drainPoll is how often a drain checks whether the last stream has ended.
const drainPoll = 50 * time.Millisecond

// replace makes next the session in use, and retires the previous one.
func (a *agentSessions) replace(next Multiplexer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current != nil {
		a.retireLocked(a.current)
	}
	a.current = next
}

// retire closes a session without a replacement, in use or not, once it is idle.
func (a *agentSessions) retire(session Multiplexer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current == session {
		a.current = nil
	}
	a.retireLocked(session)
}

func (a *agentSessions) retireLocked(session Multiplexer) {
	a.retired = append(slices.DeleteFunc(a.retired, isDone), session)
	a.closing.Go(func() { closeWhenIdle(session) })
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
	all := slices.Clone(a.retired)
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

// closeWhenIdle asks the gateway for no more streams, and closes a session when its streams have ended.
// The gateway may have opened a stream before it received that, so an idle session is closed only
// after the time of a round trip. Closing the session ends all waits, so there is no context.
func closeWhenIdle(c Multiplexer) {
	c.Drain()
	c.Responds(context.Background())
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
