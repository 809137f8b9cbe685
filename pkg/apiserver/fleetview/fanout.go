// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
)

const (
	// DefaultDeadline is how long a member may take until its status line, and until the end
	// of its reply if it refuses.
	DefaultDeadline = 2 * time.Second
	// MaxDeadline is how long a request may have it be.
	MaxDeadline = 30 * time.Second
	// deadlineParameter is the query's, in seconds.
	deadlineParameter = "memberTimeoutSeconds"
	// DefaultParallel is how many members are asked at once for one request.
	DefaultParallel = 64
	// wide is how many members may have as much of their replies wait in the gateway as a
	// single one may, which is 4 MiB. Of more it holds little.
	wide = 8
)

// deadlineOf is how long members may take until their status line.
func deadlineOf(query url.Values) (time.Duration, error) {
	text := query.Get(deadlineParameter)
	if text == "" {
		return DefaultDeadline, nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds > 0) || seconds > MaxDeadline.Seconds() {
		return 0, fmt.Errorf("%s=%q is not a number of seconds above 0 and up to %v", deadlineParameter, text, MaxDeadline.Seconds())
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// fanout asks several members the same.
type fanout struct {
	handler  *Handler
	request  *http.Request
	view     string
	deadline time.Duration
	// slots are the places of those that are asked at once, bodies of those whose replies
	// keep theirs to their end.
	slots, bodies chan struct{}
	group         sync.WaitGroup

	mu      sync.Mutex
	replies []*reply
}

func (h *Handler) newFanout(r *http.Request, view string, deadline time.Duration) *fanout {
	return &fanout{handler: h, request: r, view: view, deadline: deadline, slots: make(chan struct{}, h.parallel), bodies: make(chan struct{}, h.parallel)}
}

// question is what one member is asked.
type question struct {
	member string
	url    *url.URL
	header http.Header
	// body is nil for requests that only read.
	body []byte
	// narrow has little of the reply wait in the gateway.
	narrow bool
	// deadline is until when its status line is waited for; 0 is as long as for all.
	deadline time.Duration
	// large has it keep its place until its reply has ended, unless it is silent: it may be
	// long until all of it is read.
	large bool
	// idle is how long it may say nothing in the middle of its reply; 0 is for ever.
	idle time.Duration
}

// ask asks members, and returns their replies in that order, not yet begun.
func (f *fanout) ask(ctx context.Context, all []question) []*reply {
	replies := make([]*reply, len(all))
	for i, q := range all {
		q.narrow = q.narrow || len(all) > wide
		q.idle = max(f.deadline, stalledAfter)
		replies[i] = f.start(ctx, q)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replies = append(f.replies, replies...)
	return replies
}

// start asks one member. Whoever does closes the reply, or ends the context.
func (f *fanout) start(ctx context.Context, q question) *reply {
	asked, cancel := context.WithCancelCause(ctx)
	r := newReply(q.member, q.idle, cancel)
	f.group.Go(func() { f.serve(asked, q, r) })
	return r
}

// close gives up all that is still asked, and returns when nothing of it is left.
func (f *fanout) close() {
	f.mu.Lock()
	for _, r := range f.replies {
		r.close()
	}
	f.mu.Unlock()
	f.group.Wait()
}

// serve asks one member: by the same way as its caller would alone.
func (f *fanout) serve(ctx context.Context, q question, into *reply) {
	defer into.cancel(nil)
	places := f.slots
	if q.large {
		places = f.bodies
	}
	select {
	case places <- struct{}{}:
	case <-ctx.Done():
		into.end(context.Cause(ctx))
		return
	}
	var once sync.Once
	release := func() { once.Do(func() { <-places }) }
	defer release()
	slot := time.AfterFunc(slotFor, release)
	defer slot.Stop()
	into.onBegin = release
	if q.large {
		into.onBegin = func() { slot.Stop() }
	}
	late := time.AfterFunc(cmp.Or(q.deadline, f.deadline), func() {
		into.begin(http.StatusGatewayTimeout, errSilent)
		if !into.gives() {
			into.cancel(errSilent) // What it refuses with is not waited for any longer either.
		}
	})
	defer late.Stop()
	stop := context.AfterFunc(ctx, func() { _ = into.body.CloseWithError(context.Cause(ctx)) })
	defer stop()
	into.end(f.forward(ctx, q, into))
}

// forward returns nil if the reply came to its end.
func (f *fanout) forward(ctx context.Context, q question, into *reply) (err error) {
	defer func() {
		if v := recover(); v != nil {
			//lint:ignore errorlint It is panicked with as it is, by net/http.
			if v != http.ErrAbortHandler {
				// No server is above this goroutine that would end the request alone.
				klog.FromContext(ctx).Error(nil, "Panic while a member was asked", "member", q.member, "panic", v, "stack", string(debug.Stack()))
			}
			err = fmt.Errorf("the reply of member %q broke off", q.member)
		}
	}()
	if q.narrow {
		ctx = clustergateway.WithNarrowWindow(ctx)
	}
	r := f.request.Clone(ctx)
	r.Header = q.header.Clone()
	setBody(r, q.body)
	f.handler.gateway.ServeMember(into, r, f.view, q.member, q.url)
	return nil
}
