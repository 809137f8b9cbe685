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
	// DefaultDeadline is the time until a member's status line, and until the end of its reply if
	// it refuses.
	DefaultDeadline = 2 * time.Second
	// MaxDeadline is the largest deadline that a request can ask for.
	MaxDeadline = 30 * time.Second
	// deadlineParameter is the query parameter for it, in seconds.
	deadlineParameter = "memberTimeoutSeconds"
	// DefaultParallel is how many members are asked at once for one request.
	DefaultParallel = 64
	// wide is up to how many members may each have as much unread data in the gateway as a single
	// one, which is 4 MiB. For more members the gateway buffers little.
	wide = 8
)

// deadlineOf returns the deadline for members' status lines.
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
	// slots are the members asked at once. bodies limits how many of them keep their slot until
	// their reply has ended.
	slots, bodies chan struct{}
	group         sync.WaitGroup

	mu      sync.Mutex
	replies []*reply
}

func (h *Handler) newFanout(r *http.Request, view string, deadline time.Duration) *fanout {
	return &fanout{handler: h, request: r, view: view, deadline: deadline, slots: make(chan struct{}, h.parallel), bodies: make(chan struct{}, h.parallel)}
}

type question struct {
	member string
	url    *url.URL
	header http.Header
	// body is nil for requests that only read.
	body []byte
	// narrow limits the unread data of the reply in the gateway.
	narrow bool
	// deadline limits the wait for the status line; 0 is the deadline of the fanout.
	deadline time.Duration
	// large keeps the slot until the reply has ended, unless the member is silent, because reading
	// it may take long.
	large bool
	// idle limits a pause in the middle of the reply; 0 is no limit.
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

// start asks one member. The caller must close the reply or end the context.
func (f *fanout) start(ctx context.Context, q question) *reply {
	memberCtx, cancel := context.WithCancelCause(ctx)
	r := newReply(q.member, q.idle, cancel)
	r.question = q
	f.group.Go(func() { f.serve(memberCtx, q, r) })
	return r
}

// close aborts all requests in flight, and returns when they have ended.
func (f *fanout) close() {
	f.mu.Lock()
	for _, r := range f.replies {
		r.close()
	}
	f.mu.Unlock()
	f.group.Wait()
}

// serve asks one member in the same way as a request to that member alone.
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
			into.cancel(errSilent) // The deadline also applies to the body of a refusal.
		}
	})
	defer late.Stop()
	stop := context.AfterFunc(ctx, func() { _ = into.body.CloseWithError(context.Cause(ctx)) })
	defer stop()
	into.end(f.forward(ctx, q, into))
}

// forward returns nil if the reply was complete.
func (f *fanout) forward(ctx context.Context, q question, into *reply) (err error) {
	defer func() {
		if v := recover(); v != nil {
			//nolint:errorlint // It is panicked with as it is, by net/http.
			if v != http.ErrAbortHandler {
				// No HTTP server is above this goroutine that would recover the panic.
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
