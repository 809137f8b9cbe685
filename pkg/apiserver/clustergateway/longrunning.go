// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"sync"
)

// contextFor ends long-running requests when the caller loses its permission and when the server
// stops. When the server stops, watches end at once, because their callers resume at another
// replica. All others end as late as possible.
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

// inFlight tracks the long-running requests of a kind, to end them all at once.
type inFlight struct {
	// mu guards the following fields.
	mu      sync.Mutex
	stopped bool
	cancels map[*context.CancelCauseFunc]struct{}
	// ended is closed when the last request ends; nil while nobody waits for it.
	ended chan struct{}
}

func (l *inFlight) begin(parent context.Context) (context.Context, func()) {
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

// wait returns when no request is left, or ctx ends. Only one caller may wait at a time.
func (l *inFlight) wait(ctx context.Context) {
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

// stop ends all requests, and every later one when it begins.
func (l *inFlight) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	for cancel := range l.cancels {
		(*cancel)(errStopping)
	}
}
