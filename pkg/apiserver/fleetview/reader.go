// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"fleetgate.io/fleetgate/pkg/apiserver/fleetview/splice"
)

const (
	// retryAfter is the delay after a member's watch has ended; maxRetryAfter the delay after a
	// refusal, after a missing kind, and the maximum delay after a late reply.
	retryAfter    = time.Second
	maxRetryAfter = 30 * time.Second
)

// memberEvent is a message from the reader of a member to the merger.
type memberEvent struct {
	member string
	// began is the member's first reply, and its first success if the first failed. It is sent
	// before anything else of the member.
	began *reply
	// event is passed on.
	event *splice.Event
	// version is the member's current version; empty if it is not known.
	version          string
	kind, apiVersion string
	// listing is 1 when a list begins, and -1 when it ends; listed is true if it was complete.
	listing int
	listed  bool
	// compacted is true if the member has compacted the watch's position.
	compacted bool
}

// reader reads one member for a watch and resumes where the member's watch ended. A member that was
// not read yet, because it did not respond when others were listed or joined later, is listed first:
// its objects are new to the caller.
type reader struct {
	request memberRequest
	fanout  *fanout
	// events takes what the member sends. A message is taken before the next one is read.
	events chan<- memberEvent
	// reachable is false once the caller has lost access to the member.
	reachable func(ctx context.Context, member string) bool
	// version is where the next watch begins; empty if the member has to be listed first.
	version string
	// reported is true once the first reply was reported; succeeded is true once a success was.
	reported, succeeded bool
	// deadline is how long the member may take until its status line, pause the delay after it was
	// late.
	deadline, pause time.Duration
	cancel          context.CancelFunc
	// stopped is closed once the reader has stopped.
	stopped chan struct{}
}

// start reads until the context ends or the reader is stopped.
func (r *reader) start(ctx context.Context) {
	r.deadline, r.pause, r.stopped = r.fanout.deadline, retryAfter, make(chan struct{})
	ctx, r.cancel = context.WithCancel(ctx)
	r.fanout.group.Go(func() {
		defer close(r.stopped)
		r.run(ctx)
	})
}

func (r *reader) run(ctx context.Context) {
	for {
		wait := r.once(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		// A caller that lost access to the member must not learn anything more about it.
		if !r.reachable(ctx, r.request.member) {
			<-ctx.Done() // watch.check detects and reports that for all members.
			return
		}
	}
}

// once lists the member if it has to, and watches it until the watch ends. Nothing of a list is
// sent before the member has accepted the watch: a caller that may list but not watch is refused,
// as by a single member.
func (r *reader) once(ctx context.Context) (wait time.Duration) {
	var first *splice.Reader
	if r.version == "" {
		list := r.send(ctx, min(r.deadline, max(r.fanout.deadline, stalledAfter)))
		defer list.close()
		var ok bool
		if first, wait, ok = r.open(ctx, list); !ok {
			return wait
		}
	}
	watch := r.send(ctx, 0, "watch", "true", "allowWatchBookmarks", "true", "resourceVersion", r.version)
	defer watch.close()
	wait, ok := r.begun(ctx, watch, true)
	if ok && first != nil {
		if ok = r.list(ctx, first); !ok {
			wait = r.late()
		}
	}
	if !ok {
		if first != nil {
			r.version = ""
		}
		return wait
	}
	return r.follow(ctx, watch)
}

func (r *reader) follow(ctx context.Context, watch *reply) (wait time.Duration) {
	stream := splice.NewStream(watch)
	for {
		event, err := stream.Next()
		switch {
		case err != nil:
			return retryAfter
		case event.Type == "ERROR" && event.Code == http.StatusGone:
			return r.compacted(ctx)
		case event.Type == "ERROR", !r.pass(ctx, event):
			return retryAfter
		}
		if event.ResourceVersion != "" {
			r.version = event.ResourceVersion
		}
	}
}

// compacted starts over with a member that has compacted its history: the member is listed, and the
// merger sends the difference. That requires the memory of what was sent.
func (r *reader) compacted(ctx context.Context) (wait time.Duration) {
	r.version = ""
	r.report(ctx, memberEvent{compacted: true})
	return retryAfter
}

// open begins to read a list, up to the version from which the member is watched. A list that has
// its version only at its end is sent at once.
func (r *reader) open(ctx context.Context, list *reply) (first *splice.Reader, wait time.Duration, ok bool) {
	if wait, ok := r.begun(ctx, list, false); !ok {
		return nil, wait, false
	}
	in := splice.NewReader(list)
	if err := in.Open(); err != nil {
		r.firstReply(ctx, &reply{member: list.member, code: http.StatusBadGateway, err: err})
		return nil, r.late(), false
	}
	if r.version = in.Metadata.ResourceVersion; r.version != "" {
		return in, 0, true
	}
	if !r.firstReply(ctx, list) || !r.list(ctx, in) {
		return nil, r.late(), false
	}
	return nil, retryAfter, r.version != ""
}

// late returns the delay after a member did not respond or its list broke off. It grows each time.
// From then on the member has the maximum deadline, because others no longer wait for it.
func (r *reader) late() (wait time.Duration) {
	wait = r.pause
	r.deadline, r.pause = MaxDeadline, min(2*r.pause, maxRetryAfter)
	return wait
}

func (r *reader) list(ctx context.Context, in *splice.Reader) (ok bool) {
	if !r.report(ctx, memberEvent{listing: 1}) {
		return false
	}
	last := memberEvent{listing: -1}
	defer func() { ok = r.report(ctx, last) && last.listed }()
	for {
		item, err := in.Next()
		if errors.Is(err, io.EOF) {
			if r.version = in.Metadata.ResourceVersion; r.version != "" {
				last.version, last.kind, last.apiVersion, last.listed = r.version, in.ItemKind(), in.APIVersion, true
				r.pause = retryAfter
			}
			return true
		}
		if err != nil {
			return false
		}
		event, err := in.AsEvents(bytes.Clone(item))
		if err != nil {
			return false
		}
		if !r.report(ctx, memberEvent{kind: event.Kind, apiVersion: event.APIVersion, event: &event}) {
			return false
		}
	}
}

// pass reports an event of the member's watch. Bookmarks only update the member's position.
func (r *reader) pass(ctx context.Context, event splice.Event) bool {
	message := memberEvent{version: event.ResourceVersion, kind: event.Kind, apiVersion: event.APIVersion}
	if event.Type != "BOOKMARK" {
		event.Object = bytes.Clone(event.Object)
		message.event = &event
	}
	return r.report(ctx, message)
}

// report returns when the merger has taken the message, or false if the reader is stopped.
func (r *reader) report(ctx context.Context, message memberEvent) bool {
	message.member = r.request.member
	select {
	case r.events <- message:
		return true
	case <-ctx.Done():
		return false
	}
}

// send sends a request to the member. idle limits a pause in the middle of its reply.
func (r *reader) send(ctx context.Context, idle time.Duration, changes ...string) *reply {
	inner := *r.request.url
	inner.RawQuery = copied(inner.Query(), changes...).Encode()
	request := r.request
	request.url, request.deadline, request.idle, request.large = &inner, r.deadline, idle, idle > 0
	return r.fanout.start(ctx, request)
}

// begun waits for a status line. The member's result is reported when it has refused, or with the
// last request of an attempt.
func (r *reader) begun(ctx context.Context, of *reply, last bool) (wait time.Duration, ok bool) {
	select {
	case <-of.begun:
	case <-ctx.Done():
		return 0, false
	}
	if (last || !of.ok()) && !r.firstReply(ctx, of) {
		return 0, false
	}
	switch {
	case of.ok():
		return 0, true
	case errors.Is(of.err, errLate):
		return r.late(), false
	case of.code == http.StatusGone:
		return r.compacted(ctx), false
	case of.code == http.StatusForbidden || of.code == http.StatusNotFound:
		return maxRetryAfter, false
	}
	return retryAfter, false
}

// firstReply reports the first reply of the member, and its first success after failures. The merger
// must know the result before it gets any object of the member.
func (r *reader) firstReply(ctx context.Context, of *reply) bool {
	if r.succeeded || r.reported && !of.ok() {
		return true
	}
	r.reported, r.succeeded = true, of.ok()
	if of.body != nil && !of.ok() {
		of.status() // The reply's body is closed later.
	}
	return r.report(ctx, memberEvent{began: of})
}
