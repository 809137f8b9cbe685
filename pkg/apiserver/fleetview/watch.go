// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"

	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver/fleetview/splice"
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

// watch is one watch of many members.
type watch struct {
	h      *Handler
	x      *exchange
	fanout *fanout
	caller authorizer.Attributes
	header http.Header
	out    http.ResponseWriter
	events chan followerEvent
	// lines encodes events of members as lines of the watch.
	lines *splice.Events
	// followed are the current members.
	followed     map[string]*follower
	firstReplies map[string]*reply
	missing      missingMembers
	// trail is the position of the watch.
	trail *trail
	watchOptions
	// listing is how many members' first lists are in progress, kind and apiVersion are those of
	// the objects.
	listing          int
	kind, apiVersion string
	// marked is when the last bookmark was sent.
	marked time.Time
	// decided is when the hub last decided that the caller may have the watch.
	decided time.Time
}

// watchOptions are a caller's options for a watch.
type watchOptions struct {
	// from is where it begins; empty begins with the present objects.
	from      versions
	lasts     time.Duration
	bookmarks bool
	// initial asks for a bookmark after all present objects have been sent.
	initial bool
}

// followerEvent is a message from a follower to the writer.
type followerEvent struct {
	by *follower
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

// watch answers with the events of all members, as they arrive.
func (h *Handler) watch(w http.ResponseWriter, r *http.Request, x *exchange) error {
	header, err := memberHeader(r)
	if err != nil {
		return err
	}
	caller, err := filters.GetAuthorizerAttributes(r.Context())
	if err != nil {
		return fmt.Errorf("reading who asks for what: %w", err)
	}
	options, err := x.watchOptions(header, h.cursors)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), options.lasts)
	defer cancel()
	questions, err := x.questions(header)
	if err != nil {
		return err
	}
	f := h.newFanout(r, x.request.view, x.deadline)
	wa := &watch{
		h: h, x: x, fanout: f, caller: caller, header: header, out: w, trail: h.cursors.begin(x.members, options.from), watchOptions: options,
		events: make(chan followerEvent), lines: splice.NewEvents(viewv1alpha1.LabelMember, x.view.qualified),
		followed: map[string]*follower{}, firstReplies: map[string]*reply{}, marked: time.Now(), decided: time.Now(),
	}
	defer wa.forget()
	defer f.close()
	defer cancel()
	for _, q := range questions {
		wa.follow(ctx, q)
	}
	if err := wa.begin(ctx); err != nil {
		return err
	}
	return wa.write(ctx, r.Context())
}

// watchOptions reads the caller's options, and removes them from the query.
func (x *exchange) watchOptions(header http.Header, given *cursors) (watchOptions, error) {
	o := watchOptions{from: versions{}, lasts: watchFor, bookmarks: x.query.Get("allowWatchBookmarks") == "true"}
	if text := x.query.Get("timeoutSeconds"); text != "" {
		seconds, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return o, apierrors.NewBadRequest(fmt.Sprintf("timeoutSeconds %q is not a number", untrusted.Excerpt(text, maxText)))
		}
		if seconds > 0 {
			o.lasts = time.Duration(seconds) * time.Second
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
		return o, invalidWatch("sendInitialEvents: Forbidden: a view leaves out what is there only from a resourceVersion on: list first")
	case version == "" || version == "0":
		return o, nil
	}
	var err error
	o.from, err = given.versionsOf(version, x.members)
	return o, err
}

// invalidWatch refuses a watch-list; clients then list and watch.
func invalidWatch(why string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: "ListOptions.meta.k8s.io is invalid: " + why,
	}}
}

// begin returns once a member has something to send, so that its rows need not wait for
// unresponsive members. It fails if no member has.
func (wa *watch) begin(ctx context.Context) error {
	for len(wa.firstReplies) < len(wa.followed) {
		select {
		case event := <-wa.events:
			if event.compacted && !event.by.memory.whole {
				return errExpired(event.by.question.member, "has compacted the position of the watch")
			}
			if wa.began(event) {
				wa.missing.warn(wa.out.Header(), wa.x.deadline, wa.x.what())
				plainHeaders(wa.out.Header())
				wa.out.WriteHeader(http.StatusOK)
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return wa.x.none(&wa.missing)
}

// began records a member's first reply or first success, and reports whether it has something to
// send.
func (wa *watch) began(event followerEvent) bool {
	of := event.began
	if of == nil {
		return false
	}
	member := event.by.question.member
	wa.firstReplies[member] = of
	wa.missing.total = len(wa.followed)
	if of.code != http.StatusOK || of.err != nil {
		wa.missing.without(of)
		return false
	}
	wa.missing.recovered(member)
	wa.missing.say(of.header)
	return true
}

// write passes events on until the watch ends. Only it writes. A caller that is still connected
// when the watch's time is over, or when the gateway stops, gets a last bookmark from which it can
// resume.
func (wa *watch) write(ctx, caller context.Context) error {
	wa.flush()
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
		case event := <-wa.events:
			lines, err = wa.take(event)
			calm.Reset(quiet)
		case <-calm.C:
			if wa.listing > 0 {
				calm.Reset(quiet)
			}
			lines = wa.bookmark()
		case <-check.C:
			if lines, err = wa.check(ctx); err == nil && time.Since(wa.marked) > busy {
				lines = append(lines, wa.bookmark()...)
			}
			calm.Reset(quiet)
		}
		if ended && caller.Err() == nil {
			lines = wa.bookmark()
		}
		if err != nil {
			lines = append(lines, errorEvent(err)...)
		}
		if len(lines) > 0 {
			if _, failed := wa.out.Write(lines); failed != nil {
				return nil
			}
			wa.flush()
		}
		if err != nil || ended {
			return nil
		}
	}
}

func (wa *watch) flush() { _ = http.NewResponseController(wa.out).Flush() }

// take encodes a follower's message as lines, and records the member's position.
func (wa *watch) take(event followerEvent) (lines []byte, err error) {
	by := event.by
	if event.compacted && !by.memory.whole {
		return nil, errExpired(by.question.member, "has compacted the position of the watch")
	}
	wa.began(event)
	if event.kind != "" {
		wa.kind, wa.apiVersion = event.kind, event.apiVersion
	}
	wa.listing += event.listing
	switch {
	case event.listing > 0:
		by.listing = true
		by.memory.round++
	case event.listing < 0:
		by.listing, by.tried = false, true
		if !event.listed {
			wa.missing.late(by.question.member)
		}
		if !event.listed && !by.memory.whole {
			return nil, errExpired(by.question.member, "has broken off, and of which is not known what it had")
		}
	}
	if event.event != nil {
		if lines, err = wa.line(by, event.event, event.version); err != nil {
			return nil, badGateway(by.question.member, err)
		}
	}
	if event.listed {
		if lines, err = wa.gone(by, by.memory.forget(false)); err != nil {
			return nil, err
		}
	}
	if event.version != "" {
		wa.trail.reach(by.question.member, event.version)
	}
	if event.began != nil || event.listing < 0 {
		lines = append(lines, wa.beginning()...)
	}
	return lines, nil
}

// line encodes an event. An object that is listed again was already sent.
func (wa *watch) line(by *follower, event *splice.Event, version string) ([]byte, error) {
	if event.Type == "DELETED" {
		by.memory.remove(event.Identity)
	} else if before := by.memory.add(event.Identity); before && event.Type == "ADDED" {
		event.Type = "MODIFIED"
	}
	return by.out.Event(*event, wa.trail.step(by.question.member, version))
}

// beginning is the bookmark that says that all present objects have been sent. It is sent once
// every member that answered has been listed.
func (wa *watch) beginning() []byte {
	if !wa.initial || len(wa.firstReplies) < len(wa.followed) || wa.listing > 0 {
		return nil
	}
	for _, f := range wa.followed {
		if of := wa.firstReplies[f.question.member]; of != nil && of.code == http.StatusOK && of.err == nil && !f.tried {
			return nil
		}
	}
	line := wa.mark(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	wa.initial = line == nil
	return line
}

// bookmark carries the position of the watch, with all members, for a caller that wants to resume
// there.
func (wa *watch) bookmark() []byte {
	if wa.initial || wa.listing > 0 {
		return nil
	}
	return wa.mark(nil)
}

// mark is a bookmark. It names members that have not answered yet, because headers can no longer do
// so.
func (wa *watch) mark(annotations map[string]string) []byte {
	if !wa.bookmarks || wa.kind == "" || wa.kind == "Table" {
		return nil
	}
	wa.marked = time.Now()
	metadata := map[string]any{"resourceVersion": wa.trail.version(), "creationTimestamp": nil}
	if late := wa.late(); len(late) > 0 {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[viewv1alpha1.AnnotationSilent] = named(late)
	}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	return event("BOOKMARK", map[string]any{"kind": wa.kind, "apiVersion": wa.apiVersion, "metadata": metadata})
}

// late are the members that were not read yet.
func (wa *watch) late() []string {
	var late []string
	for _, member := range wa.missing.unread() {
		if wa.followed[member] != nil && wa.trail.at(member) == "" {
			late = append(late, member)
		}
	}
	slices.Sort(late)
	return late
}

func errorEvent(err error) []byte {
	status := apierrors.NewInternalError(err).ErrStatus
	var known *apierrors.StatusError
	if errors.As(err, &known) {
		status = known.ErrStatus
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return event("ERROR", status)
}

func event(kind string, object any) []byte {
	text, err := json.Marshal(map[string]any{"type": kind, "object": object})
	if err != nil {
		return nil
	}
	return append(text, '\n')
}

// copied is the query with changes.
func copied(of url.Values, changes ...string) url.Values {
	query := url.Values{}
	for key, values := range of {
		query[key] = values
	}
	for i := 0; i+1 < len(changes); i += 2 {
		query.Set(changes[i], changes[i+1])
	}
	return query
}
