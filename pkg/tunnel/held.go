// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"slices"
	"sync"
	"time"
)

// held are an agent's sessions: the one in use and those that it replaced. A replaced session is
// closed once its streams have ended.
type held struct {
	// mu guards the following fields.
	mu       sync.Mutex
	current  Carrier
	replaced []Carrier
	// closing counts the replaced sessions that have not ended.
	closing sync.WaitGroup
}

// drainPoll is how often a drain checks whether the last stream has ended.
const drainPoll = 50 * time.Millisecond

// replace makes next the session in use, and closes the previous one once it is idle.
func (h *held) replace(next Carrier) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current != nil {
		old := h.current
		h.replaced = slices.DeleteFunc(h.replaced, isDone)
		h.replaced = append(h.replaced, old)
		h.closing.Go(func() { closeWhenIdle(old) })
	}
	h.current = next
}

// retire closes the session in use once it is idle, without a replacement.
func (h *held) retire() {
	h.replace(nil)
}

// serves is true if there is a session in use that has not ended.
func (h *held) serves() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.current != nil && !isDone(h.current)
}

func (h *held) all() []Carrier {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := slices.Clone(h.replaced)
	if h.current != nil {
		all = append(all, h.current)
	}
	return slices.DeleteFunc(all, isDone)
}

// drain waits until no session has a stream, or ctx ends.
func (h *held) drain(ctx context.Context) {
	poll(ctx.Done(), func() bool {
		return !slices.ContainsFunc(h.all(), func(c Carrier) bool { return c.Streams() > 0 })
	})
}

// closeWhenIdle closes a session when its streams have ended.
func closeWhenIdle(c Carrier) {
	poll(c.Done(), func() bool { return c.Streams() == 0 })
	_ = c.Close()
}

func isDone(c Carrier) bool {
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
