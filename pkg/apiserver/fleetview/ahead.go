// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

const (
	// aheadMembers is how many replies are read ahead of the one that is written.
	aheadMembers = 32
	// aheadBytes is how much is read ahead of each.
	aheadBytes = 256 << 10
	// aheadChunk is the size of its pieces in memory.
	aheadChunk = 16 << 10
	// aheadOfAll limits what is read ahead for all lists. Beyond it, a list reads one member after
	// another.
	aheadOfAll = 64 << 20
	// freshFor is how long the reply of a member may wait for its turn, unless it was read to its
	// end. API servers end their replies to lists after a minute.
	freshFor = 30 * time.Second
)

// turns are the replies of a list, which are written one after the other. The next ones are read
// ahead: a member on a slow link can then send its list while others are written.
type turns struct {
	fanout *fanout
	budget *budget
	all    []*turn
	// next is the first that is not read ahead yet.
	next  int
	pumps sync.WaitGroup
}

func newTurns(f *fanout, replies []*reply) *turns {
	t := &turns{fanout: f, budget: &f.handler.ahead}
	for _, reply := range replies {
		t.all = append(t.all, newTurn(reply))
	}
	return t
}

// begin returns the reply at an index, once it may be written.
func (t *turns) begin(ctx context.Context, index int) (*turn, error) {
	for t.next = max(t.next, index+1); t.next < len(t.all) && t.next <= index+aheadMembers && t.budget.take(aheadBytes); t.next++ {
		ahead := t.all[t.next]
		ahead.pumped = true
		reply := ahead.reply
		t.pumps.Go(func() { ahead.pump(reply, t.budget) })
	}
	now := t.all[index]
	if !now.stale() {
		return now, nil
	}
	return now, t.again(ctx, now)
}

// again sends the request a second time. Nothing of the first reply may have been written.
func (t *turns) again(ctx context.Context, now *turn) error {
	now.close()
	request := now.reply.request
	request.narrow, request.deadline = false, max(t.fanout.deadline, stalledAfter)
	now.reply, now.pumped, now.repeated = t.fanout.send(ctx, []memberRequest{request})[0], false, true
	select {
	case <-now.reply.begun:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if now.reply.successful() && now.reply.err == nil {
		return nil
	}
	return errors.New(now.reply.status().Message)
}

// close ends reading ahead.
func (t *turns) close() {
	for _, turn := range t.all {
		turn.close()
	}
	t.pumps.Wait()
}

// turn is the reply of one member. Only its reader uses the fields before mu.
type turn struct {
	reply *reply
	sent  time.Time
	// pumped is true if the reply is read ahead, repeated if the request was sent again.
	pumped, repeated bool

	mu sync.Mutex // guards the following fields
	// changed is signaled when data or err change.
	changed sync.Cond
	data    [][]byte
	size    int
	err     error
}

func newTurn(of *reply) *turn {
	t := &turn{reply: of, sent: of.sent}
	t.changed.L = &t.mu
	return t
}

// pump reads a reply until the turn is closed. It waits while aheadBytes are not read.
func (t *turn) pump(reply *reply, budget *budget) {
	defer budget.take(-aheadBytes)
	var chunk []byte
	for {
		if len(chunk) == 0 {
			chunk = make([]byte, aheadChunk)
		}
		n, err := reply.Read(chunk)
		t.mu.Lock()
		if n > 0 {
			t.data, t.size = append(t.data, chunk[:n:n]), t.size+n
		}
		chunk = chunk[n:]
		if t.err == nil {
			t.err = err
		}
		t.changed.Broadcast()
		for t.err == nil && t.size >= aheadBytes {
			t.changed.Wait()
		}
		ended := t.err != nil
		t.mu.Unlock()
		if ended {
			return
		}
	}
}

// Read reads what was read ahead and then the rest.
func (t *turn) Read(p []byte) (int, error) {
	if !t.pumped {
		return t.reply.Read(p)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.size == 0 && t.err == nil {
		t.changed.Wait()
	}
	if t.size == 0 {
		return 0, t.err
	}
	n := copy(p, t.data[0])
	t.size -= n
	if t.data[0] = t.data[0][n:]; len(t.data[0]) == 0 {
		t.data[0], t.data = nil, t.data[1:]
	}
	t.changed.Broadcast()
	return n, nil
}

// stale is true for a reply that broke off, or that its member is about to end, before its turn.
func (t *turn) stale() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return !errors.Is(t.err, io.EOF)
	}
	return time.Since(t.sent) > freshFor
}

// close drops what was read ahead.
func (t *turn) close() {
	t.reply.close()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data, t.size = nil, 0
	if t.err == nil {
		t.err = errClosed
	}
	t.changed.Broadcast()
}
