// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

const (
	// watchFor is the duration of a watch without a timeout.
	watchFor = 30 * time.Minute
	// quiet is the time without events after which a bookmark is sent; busy is the interval of
	// bookmarks while events never stop.
	quiet = time.Second
	busy  = time.Minute
	// DefaultReviewPeriod is how often a watch's members and authorization are checked again.
	DefaultReviewPeriod = 10 * time.Second
	// checkTimeout limits one such check, during which the watch sends nothing.
	checkTimeout = 10 * time.Second
)

// watch is one watch of many members: readers read members, the merger turns what they report into
// lines, and the writer writes the lines.
type watch struct {
	h      *Handler
	x      *exchange
	fanout *fanout
	caller authorizer.Attributes
	header http.Header
	// readers are those of the current members. They send to events.
	readers map[string]*reader
	events  chan memberEvent
	merger  *merger
	writer  eventWriter
	// decided is when the hub last decided that the caller may have the watch.
	decided time.Time
}

// watchOptions are a caller's options for a watch.
type watchOptions struct {
	// from is where it begins; empty begins with the present objects.
	from      versions
	duration  time.Duration
	bookmarks bool
	// initial asks for a bookmark after all present objects have been sent.
	initial bool
}

// watch writes the events of all members, as they arrive.
func (h *Handler) watch(w http.ResponseWriter, r *http.Request, x *exchange) error {
	header, err := memberHeader(r)
	if err != nil {
		return err
	}
	caller, err := filters.GetAuthorizerAttributes(r.Context())
	if err != nil {
		return fmt.Errorf("reading the attributes of the request: %w", err)
	}
	options, err := x.watchOptions(header, h.cursors)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), options.duration)
	defer cancel()
	requests, err := x.memberRequests(header)
	if err != nil {
		return err
	}
	wa := &watch{
		h: h, x: x, fanout: h.newFanout(r, x.request.view, x.deadline), caller: caller, header: header,
		readers: map[string]*reader{}, events: make(chan memberEvent), writer: eventWriter{w}, decided: time.Now(),
		merger: newMerger(h.cursors.begin(x.members, options.from), &h.remembered, x.view.qualified, options),
	}
	defer wa.merger.close()
	defer wa.fanout.close()
	defer cancel()
	for _, request := range requests {
		wa.join(ctx, request)
	}
	if err := wa.begin(ctx, w.Header()); err != nil {
		return err
	}
	wa.run(ctx, r.Context())
	return nil
}

// watchOptions reads the caller's options, and removes them from the query.
func (x *exchange) watchOptions(header http.Header, issued *cursors) (watchOptions, error) {
	o := watchOptions{from: versions{}, duration: watchFor, bookmarks: x.query.Get("allowWatchBookmarks") == "true"}
	if text := x.query.Get("timeoutSeconds"); text != "" {
		seconds, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return o, apierrors.NewBadRequest(fmt.Sprintf("timeoutSeconds %q is not a number", untrusted.Excerpt(text, maxText)))
		}
		if seconds > 0 {
			o.duration = time.Duration(seconds) * time.Second
		}
	}
	version, match, sends := x.query.Get("resourceVersion"), x.query.Get("resourceVersionMatch"), x.query.Get("sendInitialEvents")
	for _, key := range []string{"watch", "timeoutSeconds", "allowWatchBookmarks", "sendInitialEvents"} {
		x.query.Del(key)
	}
	switch {
	case sends != "" && match != string(metav1.ResourceVersionMatchNotOlderThan):
		return o, invalidWatch("resourceVersionMatch: Forbidden: sendInitialEvents requires resourceVersionMatch=NotOlderThan")
	case sends == "" && match != "":
		return o, invalidWatch("resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
	case sends == "true" && wantsTable(header):
		return o, invalidWatch("sendInitialEvents: Forbidden: a table says nowhere that its beginning is complete: list first")
	case sends == "true":
		// Members are read at their current version, which is not older than any given one.
		o.initial = o.bookmarks
		return o, nil
	case sends == "false" && (version == "" || version == "0"):
		return o, invalidWatch("sendInitialEvents: Forbidden: a view can omit initial events only with a resourceVersion: list first")
	case version == "" || version == "0":
		return o, nil
	}
	var err error
	o.from, err = issued.versionsOf(version, x.members)
	return o, err
}

// invalidWatch refuses a watch-list; clients then list and watch.
func invalidWatch(reason string) error {
	return failure(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "ListOptions.meta.k8s.io is invalid: "+reason)
}

// begin sends the headers once a member has something to send, so that its rows need not wait for
// unresponsive members. It fails if no member has.
func (wa *watch) begin(ctx context.Context, header http.Header) error {
	for wa.merger.unreplied > 0 {
		select {
		case message := <-wa.events:
			if _, err := wa.merger.add(message); err != nil {
				return err
			}
			if message.began != nil && message.began.ok() {
				wa.merger.missing.warn(header, wa.x.deadline, wa.x.what())
				wa.writer.begin()
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return wa.x.none(&wa.merger.missing)
}

// run writes what the merger returns until the watch ends. A caller that is still connected when the
// watch's time is over, or when the gateway stops, gets a last bookmark from which it can resume.
func (wa *watch) run(ctx, caller context.Context) {
	calm, check := time.NewTimer(quiet), time.NewTicker(wa.h.reviewed)
	defer calm.Stop()
	defer check.Stop()
	for {
		var lines []byte
		var err error
		ended := false
		select {
		case <-ctx.Done():
			ended = true
		case <-wa.h.stopping:
			ended = true
		case message := <-wa.events:
			lines, err = wa.merger.add(message)
			calm.Reset(quiet)
		case <-calm.C:
			if wa.merger.listing > 0 {
				calm.Reset(quiet)
			}
			lines = wa.merger.bookmark()
		case <-check.C:
			if lines, err = wa.check(ctx); err == nil && time.Since(wa.merger.marked) > busy {
				lines = append(lines, wa.merger.bookmark()...)
			}
			calm.Reset(quiet)
		}
		if ended && caller.Err() == nil {
			lines = wa.merger.bookmark()
		}
		if err != nil {
			lines = append(lines, errorEvent(err)...)
		}
		if failed := wa.writer.write(lines); failed != nil || err != nil || ended {
			return
		}
	}
}

// copied is the query with changes.
func copied(of url.Values, changes ...string) url.Values {
	query := url.Values{}
	maps.Copy(query, of)
	for i := 0; i+1 < len(changes); i += 2 {
		query.Set(changes[i], changes[i+1])
	}
	return query
}
