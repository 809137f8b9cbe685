// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"sync"
)

// contextFor ends long requests when the right to them is taken away, and when the server
// stops: watches at once, since their callers go on with another replica, the others as
// late as possible.
func (h *Handler) contextFor(ctx context.Context, x *exchange) (context.Context, func()) {
	if !x.request.LongRunning {
		return ctx, func() {}
	}
	kind := &h.streaming
	if x.request.isWatch() {
		kind = &h.watching
	}
	ctx, end := kind.begin(ctx)
	ctx, leave := h.reviews.join(ctx, x)
	return ctx, func() {
		x.ended = context.Cause(ctx)
		leave()
		end()
	}
}

// lasting knows the requests of a kind that may last, to end them all at once.
type lasting struct {
	// mu guards the rest.
	mu      sync.Mutex
	stopped bool
	cancels map[*context.CancelCauseFunc]struct{}
	// ended is closed when the last request ends; nil while nobody waits for it.
	ended chan struct{}
}

func (l *lasting) begin(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		cancel(errStopping)
		return ctx, func() {}
	}
	if l.cancels == nil {
		l.cancels = map[*context.CancelCauseFunc]struct{}{}
	}
	l.cancels[&cancel] = struct{}{}
	return ctx, func() {
		cancel(nil)
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.cancels, &cancel)
		if l.ended != nil && len(l.cancels) == 0 {
			close(l.ended)
			l.ended = nil
		}
	}
}

// wait returns when no request is left, or ctx ends. One waits at a time.
func (l *lasting) wait(ctx context.Context) {
	l.mu.Lock()
	if len(l.cancels) == 0 {
		l.mu.Unlock()
		return
	}
	ended := make(chan struct{})
	l.ended = ended
	l.mu.Unlock()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// stop ends all requests, and every later one at its beginning.
func (l *lasting) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	for cancel := range l.cancels {
		(*cancel)(errStopping)
	}
}
