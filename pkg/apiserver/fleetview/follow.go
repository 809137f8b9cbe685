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
	// againAfter is the delay after a member's watch has ended; refusedAgain the delay after a
	// refusal, after a missing kind, and the maximum delay after a late reply.
	againAfter   = time.Second
	refusedAgain = 30 * time.Second
)

// follower follows one member for a watch and resumes where the member's watch ended. A member that
// was not read yet, because it was silent when others were listed or joined later, is listed first:
// its objects are new to the caller.
type follower struct {
	watch    *watch
	question question
	version  string
	out      *splice.Member
	// reported is true once the first reply was reported; well is true once a success was.
	reported, well bool
	cancel         context.CancelFunc
	// patience is how long the member may take until its status line, pause the delay after it was
	// late.
	patience, pause time.Duration
	// left is closed once the follower has stopped.
	left chan struct{}

	// Only the writer uses the following fields. listing is true while a list of the member is
	// being sent; tried is true once a list has ended, successfully or not.
	listing, tried bool
	memory         *memory
}

// run follows until the context ends.
func (f *follower) run(ctx context.Context) {
	for {
		wait := f.once(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		// A caller that lost access to the member must not learn anything more about it.
		may, err := f.watch.h.reachable(ctx, f.watch.h.hub.Reviews, f.watch.caller, []string{f.question.member})
		if err == nil && len(may) == 0 {
			<-ctx.Done() // watch.check detects and reports that for all members.
			return
		}
	}
}

// once lists the member if it has to, and watches it until the watch ends. Nothing of a list is
// sent before the member has accepted the watch: a caller that may list but not watch is refused,
// as by a single member.
func (f *follower) once(ctx context.Context) (again time.Duration) {
	var first *splice.Reader
	if f.version == "" {
		r := f.ask(ctx, min(f.patience, max(f.watch.x.deadline, stalledAfter)))
		defer r.close()
		var ok bool
		if first, again, ok = f.open(ctx, r); !ok {
			return again
		}
	}
	r := f.ask(ctx, 0, "watch", "true", "allowWatchBookmarks", "true", "resourceVersion", f.version)
	defer r.close()
	wait, ok := f.begun(ctx, r, true)
	if ok && first != nil {
		if ok = f.list(ctx, first); !ok {
			wait = f.late()
		}
	}
	if !ok {
		if first != nil {
			f.version = ""
		}
		return wait
	}
	stream := splice.NewStream(r)
	for {
		event, err := stream.Next()
		if err != nil {
			return againAfter
		}
		if event.Type == "ERROR" {
			if event.Code == http.StatusGone {
				return f.compacted(ctx)
			}
			return againAfter
		}
		if !f.pass(ctx, event) {
			return againAfter
		}
		if event.ResourceVersion != "" {
			f.version = event.ResourceVersion
		}
	}
}

// compacted starts over with a member that has compacted its history: the member is listed, and the
// writer sends the difference. That requires the memory of what was sent.
func (f *follower) compacted(ctx context.Context) (again time.Duration) {
	f.version = ""
	f.tell(ctx, followerEvent{compacted: true})
	return againAfter
}

// open begins to read a list, up to the version from which the member is watched. A list that has
// its version only at its end is sent at once.
func (f *follower) open(ctx context.Context, r *reply) (first *splice.Reader, again time.Duration, ok bool) {
	if wait, ok := f.begun(ctx, r, false); !ok {
		return nil, wait, false
	}
	in := splice.NewReader(r)
	if err := in.Open(); err != nil {
		f.firstReply(ctx, &reply{member: r.member, code: http.StatusBadGateway, err: err})
		return nil, f.late(), false
	}
	if f.version = in.Metadata.ResourceVersion; f.version != "" {
		return in, 0, true
	}
	if !f.firstReply(ctx, r) || !f.list(ctx, in) {
		return nil, f.late(), false
	}
	return nil, againAfter, f.version != ""
}

// late returns the delay after a member was silent or its list broke off. It grows each time. From
// then on the member has the maximum deadline, because others no longer wait for it.
func (f *follower) late() (again time.Duration) {
	again = f.pause
	f.patience, f.pause = MaxDeadline, min(2*f.pause, refusedAgain)
	return again
}

// list sends all objects of the member.
func (f *follower) list(ctx context.Context, in *splice.Reader) (ok bool) {
	if !f.tell(ctx, followerEvent{listing: 1}) {
		return false
	}
	last := followerEvent{listing: -1}
	defer func() { ok = f.tell(ctx, last) && last.listed }()
	for {
		item, err := in.Next()
		if errors.Is(err, io.EOF) {
			if f.version = in.Metadata.ResourceVersion; f.version != "" {
				last.version, last.kind, last.apiVersion, last.listed = f.version, in.ItemKind(), in.APIVersion, true
				f.pause = againAfter
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
		if !f.tell(ctx, followerEvent{kind: event.Kind, apiVersion: event.APIVersion, event: &event}) {
			return false
		}
	}
}

// pass hands an event to the writer, and returns when it has been written or dropped. Bookmarks
// only update the member's position.
func (f *follower) pass(ctx context.Context, event splice.Event) bool {
	of := followerEvent{version: event.ResourceVersion, kind: event.Kind, apiVersion: event.APIVersion}
	if event.Type != "BOOKMARK" {
		event.Object = bytes.Clone(event.Object)
		of.event = &event
	}
	return f.tell(ctx, of)
}

func (f *follower) tell(ctx context.Context, of followerEvent) bool {
	of.by = f
	select {
	case f.watch.events <- of:
		return true
	case <-ctx.Done():
		return false
	}
}

// ask sends a request to the member. idle limits a pause in the middle of its reply.
func (f *follower) ask(ctx context.Context, idle time.Duration, changes ...string) *reply {
	inner := *f.question.url
	inner.RawQuery = copied(inner.Query(), changes...).Encode()
	q := f.question
	q.url, q.deadline, q.idle, q.large = &inner, f.patience, idle, idle > 0
	return f.watch.fanout.start(ctx, q)
}

// begun waits for a status line. The member's result is reported when it has refused, or with the
// last request of an attempt.
func (f *follower) begun(ctx context.Context, r *reply, last bool) (again time.Duration, ok bool) {
	select {
	case <-r.begun:
	case <-ctx.Done():
		return 0, false
	}
	good := r.code == http.StatusOK && r.err == nil
	if (last || !good) && !f.firstReply(ctx, r) {
		return 0, false
	}
	switch {
	case good:
		return 0, true
	case errors.Is(r.err, errSilent):
		return f.late(), false
	case r.code == http.StatusGone:
		return f.compacted(ctx), false
	case r.code == http.StatusForbidden || r.code == http.StatusNotFound:
		return refusedAgain, false
	}
	return againAfter, false
}

// firstReply reports the first reply of the member, and its first success after failures. The watch
// must know the result before it gets any object of the member.
func (f *follower) firstReply(ctx context.Context, r *reply) bool {
	good := r.code == http.StatusOK && r.err == nil
	if f.well || f.reported && !good {
		return true
	}
	f.reported, f.well = true, good
	if r.body != nil && !good {
		r.status() // The reply's body is closed later.
	}
	return f.tell(ctx, followerEvent{began: r})
}
