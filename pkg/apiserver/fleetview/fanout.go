// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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
	// MaxDeadline is the largest deadline that a request can have.
	MaxDeadline = 30 * time.Second
	// deadlineParameter is the query parameter for it, in seconds.
	deadlineParameter = "memberTimeoutSeconds"
	// DefaultParallel is how many members get a request at once for one request of a caller.
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

// fanout sends requests to several members.
type fanout struct {
	handler  *Handler
	request  *http.Request
	view     string
	deadline time.Duration
	// slots are the requests in flight at once. bodies limits how many of them keep their slot until
	// their reply has ended.
	slots, bodies chan struct{}
	group         sync.WaitGroup

	mu      sync.Mutex
	replies []*reply
}

func (h *Handler) newFanout(r *http.Request, view string, deadline time.Duration) *fanout {
	return &fanout{handler: h, request: r, view: view, deadline: deadline, slots: make(chan struct{}, h.parallel), bodies: make(chan struct{}, h.parallel)}
}

// memberRequest is a request to one member.
type memberRequest struct {
	member string
	url    *url.URL
	header http.Header
	// body is nil for requests that only read.
	body []byte
	// narrow is set for one of many members. It limits the unread data of the reply in the gateway, and
	// lets the request wait while the gateway is busy.
	narrow bool
	// deadline limits the wait for the status line; 0 is the deadline of the fanout.
	deadline time.Duration
	// large keeps the slot until the reply has ended, unless the member does not reply, because reading
	// it may take long.
	large bool
	// idle limits a pause in the middle of the reply; 0 is no limit.
	idle time.Duration
}

// send sends requests, and returns the replies in their order, not yet begun.
func (f *fanout) send(ctx context.Context, all []memberRequest) []*reply {
	replies := make([]*reply, len(all))
	for i, request := range all {
		request.narrow = request.narrow || len(all) > wide
		request.idle = max(f.deadline, stalledAfter)
		replies[i] = f.start(ctx, request)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replies = append(f.replies, replies...)
	return replies
}

// start sends one request. The caller must close the reply or end the context.
func (f *fanout) start(ctx context.Context, request memberRequest) *reply {
	memberCtx, cancel := context.WithCancelCause(ctx)
	r := newReply(request.member, request.idle, cancel)
	r.request = request
	f.group.Go(func() { f.serve(memberCtx, request, r) })
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

// serve sends a request in the same way as a request of a caller to that member alone.
func (f *fanout) serve(ctx context.Context, request memberRequest, into *reply) {
	defer into.cancel(nil)
	places := f.slots
	if request.large {
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
	if request.narrow {
		if err := f.handler.pace.await(ctx); err != nil {
			into.end(err)
			return
		}
	}
	slot := time.AfterFunc(slotFor, release)
	defer slot.Stop()
	into.onBegin = release
	if request.large {
		into.onBegin = func() { slot.Stop() }
	}
	late := time.AfterFunc(cmp.Or(request.deadline, f.deadline), func() {
		into.begin(http.StatusGatewayTimeout, errLate)
		if !into.successful() {
			into.cancel(errLate) // The deadline also applies to the body of a refusal.
		}
	})
	defer late.Stop()
	stop := context.AfterFunc(ctx, func() { _ = into.body.CloseWithError(context.Cause(ctx)) })
	defer stop()
	into.end(f.forward(ctx, request, into))
}

// forward returns nil if the reply was complete.
func (f *fanout) forward(ctx context.Context, request memberRequest, into *reply) (err error) {
	defer func() {
		if v := recover(); v != nil {
			//nolint:errorlint // net/http panics with exactly this value.
			if v != http.ErrAbortHandler {
				// No HTTP server is above this goroutine that would recover the panic.
				klog.FromContext(ctx).Error(nil, "Recovered a panic in a request to a member", "member", request.member, "panic", v, "stack", string(debug.Stack()))
			}
			err = errBrokeOff(request.member)
		}
	}()
	if request.narrow {
		ctx = clustergateway.WithNarrowWindow(ctx)
	}
	ctx = clustergateway.WithBody(ctx, func(body io.Reader) { into.passed = &passedBody{Reader: body, ctx: ctx, member: request.member} })
	r := f.request.Clone(ctx)
	r.Header = request.header.Clone()
	setBody(r, request.body)
	f.handler.gateway.ServeMember(into, r, f.view, request.member, request.url)
	return nil
}

func errBrokeOff(member string) error { return fmt.Errorf("the reply of member %q broke off", member) }

// passedBody is the body of a member's reply. Its error says why the request ended.
type passedBody struct {
	io.Reader
	//nolint:containedctx // A body has its request's context.
	ctx    context.Context
	member string
}

func (b *passedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	return n, cmp.Or(context.Cause(b.ctx), errBrokeOff(b.member))
}
