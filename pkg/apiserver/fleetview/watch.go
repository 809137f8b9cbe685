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
)

const (
	// watchFor is how long a watch lasts that does not say.
	watchFor = 30 * time.Minute
	// quiet is after how long without an event a bookmark tells where the watch is.
	quiet = time.Second
	// DefaultReviewPeriod is how often it is asked whether a watched view has the same
	// members, and the caller the right to it.
	DefaultReviewPeriod = 10 * time.Second
)

// watch is one watch of many members.
type watch struct {
	h         *Handler
	x         *exchange
	fanout    *fanout
	caller    authorizer.Attributes
	out       http.ResponseWriter
	events    chan told
	outcomes  chan *reply
	versions  versions
	bookmarks bool
	// listing is how many members' first lists are under way, kind and apiVersion those of
	// the objects.
	listing          int
	kind, apiVersion string
}

// told is what a follower tells the one who writes.
type told struct {
	member string
	// line is passed on as it is.
	line func() ([]byte, error)
	// version is where the member is now; empty if that is not known.
	version          string
	kind, apiVersion string
	// listing is 1 when a first list begins, and -1 when it ends.
	listing int
	// end ends the watch.
	end error
}

// watch answers with the events of all members, as they come.
func (h *Handler) watch(w http.ResponseWriter, r *http.Request, x *exchange) error {
	header, err := askedHeader(r)
	if err != nil {
		return err
	}
	caller, err := filters.GetAuthorizerAttributes(r.Context())
	if err != nil {
		return fmt.Errorf("reading who asks for what: %w", err)
	}
	from, lasts, err := x.watchFrom()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), lasts)
	defer cancel()
	bookmarks := x.query.Get("allowWatchBookmarks") == "true"
	for _, key := range []string{"watch", "timeoutSeconds", "allowWatchBookmarks", "sendInitialEvents"} {
		x.query.Del(key)
	}
	questions, err := x.questions(header)
	if err != nil {
		return err
	}
	f := h.newFanout(r, x.request.view, x.deadline)
	wa := &watch{
		h: h, x: x, fanout: f, caller: caller, out: w, versions: from, bookmarks: bookmarks,
		events: make(chan told), outcomes: make(chan *reply, len(questions)),
	}
	defer f.close()
	defer cancel()
	events := splice.NewEvents(viewv1alpha1.LabelMember, x.view.qualified)
	for _, q := range questions {
		follower := &follower{watch: wa, question: q, version: from.of(q.member), out: events.Member(q.member)}
		f.group.Go(func() { follower.run(ctx) })
	}
	if err := wa.begin(ctx, len(questions)); err != nil {
		return err
	}
	return wa.write(ctx)
}

// watchFrom is where a watch begins, and how long it lasts.
func (x *exchange) watchFrom() (versions, time.Duration, error) {
	if x.query.Get("sendInitialEvents") == "true" {
		// Clients list then, and watch from there.
		return nil, 0, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
			Message: "sendInitialEvents is forbidden for watch of a view of the fleet: list first",
		}}
	}
	lasts := watchFor
	if text := x.query.Get("timeoutSeconds"); text != "" {
		seconds, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return nil, 0, apierrors.NewBadRequest(fmt.Sprintf("timeoutSeconds %q is not a number", printable(text)))
		}
		if seconds > 0 {
			lasts = time.Duration(seconds) * time.Second
		}
	}
	version := x.query.Get("resourceVersion")
	if version == "" || version == "0" {
		return versions{}, lasts, nil
	}
	from, err := decodeVersions(version, x.members)
	return from, lasts, err
}

// begin waits until each member has sent its status line or is late.
func (wa *watch) begin(ctx context.Context, members int) error {
	t := &tally{asked: members}
	var good bool
	var forbidden, missing, failure *metav1.Status
	for range members {
		var of *reply
		select {
		case of = <-wa.outcomes:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		switch code := of.code; {
		case code == http.StatusOK && of.err == nil:
			good = true
		case code == http.StatusForbidden:
			t.refused, forbidden = append(t.refused, of.member), first(forbidden, of)
		case code == http.StatusNotFound:
			missing = first(missing, of)
		case code == http.StatusGone:
			return errExpired(of.member, "has compacted what it would go on with")
		case code >= 500 || code == http.StatusTooManyRequests:
			t.silent = append(t.silent, of.member)
		default:
			t.failing, failure = append(t.failing, of.member), first(failure, of)
			t.why = failure.Message
		}
	}
	if !good {
		return wa.h.none(wa.x, t, failure, forbidden, missing)
	}
	for _, members := range [][]string{t.silent, t.refused, t.failing} {
		slices.Sort(members)
	}
	t.warn(wa.out.Header(), wa.x.deadline, wa.x.what())
	plainHeaders(wa.out.Header())
	wa.out.WriteHeader(http.StatusOK)
	return nil
}

// write passes events on until the watch ends. It is the only one that writes.
func (wa *watch) write(ctx context.Context) error {
	flush := func() { _ = http.NewResponseController(wa.out).Flush() }
	flush()
	calm, check := time.NewTimer(quiet), time.NewTicker(wa.h.reviewed)
	defer calm.Stop()
	defer check.Stop()
	for {
		var line []byte
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-wa.h.stopping:
			return nil
		case event := <-wa.events:
			line, err = wa.take(event)
			calm.Reset(quiet)
		case <-calm.C:
			if wa.listing > 0 {
				calm.Reset(quiet)
			}
			line, err = wa.bookmark()
		case <-check.C:
			err = wa.check(ctx)
		}
		if err != nil {
			line = errorEvent(err)
		}
		if len(line) > 0 {
			if _, failed := wa.out.Write(line); failed != nil {
				return nil
			}
			flush()
		}
		if err != nil {
			return nil
		}
	}
}

// take is the line of an event, and notes where its member is.
func (wa *watch) take(event told) ([]byte, error) {
	if event.end != nil {
		return nil, event.end
	}
	wa.listing += event.listing
	if event.kind != "" && event.kind != "Table" {
		wa.kind, wa.apiVersion = event.kind, event.apiVersion
	}
	var line []byte
	if event.line != nil {
		var err error
		if line, err = event.line(); err != nil {
			return nil, badGateway(event.member, err)
		}
	}
	if event.version != "" {
		wa.versions.set(event.member, event.version)
	}
	return line, nil
}

// bookmark tells where the watch is, with all members, to who wants to go on from there.
func (wa *watch) bookmark() ([]byte, error) {
	if !wa.bookmarks || wa.kind == "" || wa.listing > 0 {
		return nil, nil
	}
	return event("BOOKMARK", map[string]any{
		"kind": wa.kind, "apiVersion": wa.apiVersion,
		"metadata": map[string]any{"resourceVersion": wa.versions.encode(wa.x.members), "creationTimestamp": nil},
	}), nil
}

// check ends the watch if the caller may no longer use the view, or if it is of other
// members now: who lists again sees them.
func (wa *watch) check(ctx context.Context) error {
	decision, _, err := wa.h.authorizer.Authorize(ctx, wa.caller)
	if err != nil {
		//lint:ignore nilerr What cannot be found out is no reason to end everybody's watches.
		return nil
	}
	if decision != authorizer.DecisionAllow {
		return apierrors.NewForbidden(viewResource, wa.x.request.view, errors.New("the right to it was taken away"))
	}
	view, err := wa.h.viewOf(ctx, wa.x.request.view)
	if err != nil {
		return err
	}
	members, err := wa.h.reachable(ctx, wa.caller, wa.h.members(view))
	if err != nil {
		//lint:ignore nilerr As above.
		return nil
	}
	if !slices.Equal(members, wa.x.members) || view.qualified != wa.x.view.qualified {
		return apierrors.NewResourceExpired("the members of the view, or those that you may reach, have changed: list again")
	}
	return nil
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
