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
	// againAfter is when a member is asked again whose watch has ended; refusedAgain one
	// that refused, or has no such kind.
	againAfter   = time.Second
	refusedAgain = 30 * time.Second
)

// follower follows one member for a watch: it goes on where the member's watch ended. A
// member of which nothing was read yet, since it was silent when others were listed, or
// came later, is listed first; what it has is new to the caller.
type follower struct {
	watch    *watch
	question question
	version  string
	out      *splice.Member
	told     bool
	cancel   context.CancelFunc
	// left is closed once it follows no more.
	left chan struct{}

	// What follows is for the one who writes. listing is true while a list of the member
	// is being told, tried once one has ended, whichever way.
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
		// Whoever lost the way into the member learns nothing more of it.
		may, err := f.watch.h.reachable(ctx, f.watch.caller, []string{f.question.member})
		if err == nil && len(may) == 0 {
			<-ctx.Done() // It is found out, and told, where all members are looked at.
			return
		}
	}
}

// once lists the member if it has to, and watches it until that ends.
func (f *follower) once(ctx context.Context) (again time.Duration) {
	if f.version == "" {
		if wait, ok := f.list(ctx); !ok {
			return wait
		}
	}
	r := f.ask(ctx, "watch", "true", "allowWatchBookmarks", "true", "resourceVersion", f.version)
	defer r.close()
	if wait, ok := f.begun(ctx, r); !ok {
		return wait
	}
	stream := splice.NewStream(r.body)
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

// compacted begins anew with a member that has compacted where it was: it is listed, and who
// writes tells what has changed. That needs to know what was sent before.
func (f *follower) compacted(ctx context.Context) (again time.Duration) {
	f.version = ""
	f.tell(ctx, told{compacted: true})
	return againAfter
}

// list tells all that the member has.
func (f *follower) list(ctx context.Context) (again time.Duration, ok bool) {
	r := f.ask(ctx)
	defer r.close()
	if wait, ok := f.begun(ctx, r); !ok {
		return wait, false
	}
	in := splice.NewReader(r.body)
	if !f.tell(ctx, told{listing: 1}) {
		return againAfter, false
	}
	last := told{listing: -1}
	defer func() { ok = f.tell(ctx, last) && last.listed }()
	if err := in.Open(); err != nil {
		return againAfter, false
	}
	for {
		item, err := in.Next()
		if errors.Is(err, io.EOF) {
			if f.version = in.Metadata.ResourceVersion; f.version != "" {
				last.version, last.kind, last.apiVersion, last.listed = f.version, in.ItemKind(), in.APIVersion, true
			}
			return againAfter, true
		}
		if err != nil {
			return againAfter, false
		}
		event, err := in.AsEvents(bytes.Clone(item))
		if err != nil {
			return againAfter, false
		}
		if !f.tell(ctx, told{kind: event.Kind, apiVersion: event.APIVersion, event: &event}) {
			return againAfter, false
		}
	}
}

// pass hands an event over, and returns when it has been written or will not be. Bookmarks
// only tell where the member is.
func (f *follower) pass(ctx context.Context, event splice.Event) bool {
	of := told{version: event.ResourceVersion, kind: event.Kind, apiVersion: event.APIVersion}
	if event.Type != "BOOKMARK" {
		event.Object = bytes.Clone(event.Object)
		of.event = &event
	}
	return f.tell(ctx, of)
}

func (f *follower) tell(ctx context.Context, of told) bool {
	of.by = f
	select {
	case f.watch.events <- of:
		return true
	case <-ctx.Done():
		return false
	}
}

func (f *follower) ask(ctx context.Context, changes ...string) *reply {
	inner := *f.question.url
	inner.RawQuery = copied(inner.Query(), changes...).Encode()
	q := f.question
	q.url = &inner
	return f.watch.fanout.start(ctx, q)
}

// begun waits for a status line. Only the first is told: the answer begins with it.
func (f *follower) begun(ctx context.Context, r *reply) (again time.Duration, ok bool) {
	select {
	case <-r.begun:
	case <-ctx.Done():
		return 0, false
	}
	if !f.told {
		f.told = true
		if r.body != nil && (r.code != http.StatusOK || r.err != nil) {
			r.said = r.status() // It is read before the reply ends.
		}
		if !f.tell(ctx, told{began: r}) {
			return 0, false
		}
	}
	switch {
	case r.code == http.StatusOK && r.err == nil:
		return 0, true
	case r.code == http.StatusGone:
		return f.compacted(ctx), false
	case r.code == http.StatusForbidden || r.code == http.StatusNotFound:
		return refusedAgain, false
	}
	return againAfter, false
}
