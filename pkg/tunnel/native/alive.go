// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// answerWithin is how long a peer that lives may take to answer a question, and
	// tripsWithin how many round trips where those are long.
	answerWithin = 1500 * time.Millisecond
	tripsWithin  = 4
	// lookedLate is how late this side may look for the answer and still know that there is
	// none: later, it stood still itself.
	lookedLate = 250 * time.Millisecond
	// tellingBacklog is how many bytes may be on their way for an answer to be expected in
	// that time: on a slow way the question is behind them.
	tellingBacklog = 64 << 10
)

// questions are those whether the peer lives. One at a time is asked, for all who want to
// know: a peer ends a session that asks too often.
type questions struct {
	// mu guards asking.
	mu sync.Mutex
	// asking is closed when the question under way has its answer; nil if none is.
	asking chan struct{}
	// unanswered is one more than what had arrived when a question got no answer, 0 if none
	// was asked in vain: it counts until anything arrives.
	unanswered atomic.Int64
}

// Answers asks the peer for a sign of life, and reports whether one came in 1.5 s (four round
// trips where those are longer), or anything else did. A peer that gives none stands
// still, or the way to it does. The session goes on, and so does the peer perhaps: [Carrier.Silent]
// tells until then. Where so much is on its way that an answer may take longer, or ctx
// ends first, the peer is not doubted.
func (c *Carrier) Answers(ctx context.Context) bool {
	if c.Silent() {
		return false
	}
	q := &c.questions
	q.mu.Lock()
	asked := q.asking
	if asked == nil {
		asked = make(chan struct{})
		q.asking = asked
		c.ask(asked)
	}
	q.mu.Unlock()
	select {
	case <-asked:
	case <-ctx.Done():
	case <-c.done:
	}
	return !c.Silent()
}

// ask has a question answered in its time, or told to be unanswered.
func (c *Carrier) ask(asked chan struct{}) {
	before := c.wire.reads.Load()
	telling := c.wire.sent.Load()-c.wire.answered.Load() <= tellingBacklog
	c.ping()
	within, began := max(answerWithin, tripsWithin*c.roundTrip()), time.Now()
	time.AfterFunc(within, func() {
		c.questions.mu.Lock()
		defer c.questions.mu.Unlock()
		if telling && c.wire.reads.Load() == before && time.Since(began) <= within+lookedLate {
			c.questions.unanswered.Store(before + 1)
		}
		c.questions.asking = nil
		close(asked)
	})
}

// Silent reports whether the peer was asked for a sign of life in vain, and nothing has
// arrived since.
func (c *Carrier) Silent() bool {
	unanswered := c.questions.unanswered.Load()
	return unanswered != 0 && c.wire.reads.Load() == unanswered-1
}
