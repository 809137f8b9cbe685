// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver/fleetview/splice"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// notPassed are parameters that mean something else, or nothing, to one member.
var notPassed = []string{"limit", "continue", "resourceVersion", "resourceVersionMatch"}

// list answers with the items of all members.
func (h *Handler) list(w http.ResponseWriter, r *http.Request, x *exchange) error {
	w = newProgressWriter(w)
	header, err := memberHeader(r)
	if err != nil {
		return err
	}
	streams, err := x.streamOf()
	if err != nil {
		return err
	}
	questions, err := x.questions(header)
	if err != nil {
		return err
	}
	limit, err := limitOf(x.query)
	if err != nil {
		return err
	}
	if err := checkVersion(x.query.Get("resourceVersion"), x.members); err != nil {
		return err
	}
	begin, err := x.tokenOf()
	if err != nil {
		return err
	}
	if limit > 0 || begin != nil {
		if limit == 0 {
			limit = math.MaxInt64
		}
		return h.page(w, r, x, questions, limit, begin)
	}
	if streams {
		return h.stream(w, r, x, questions)
	}
	f := h.newFanout(r, x.request.view, x.deadline)
	defer f.close()
	good, t, err := h.gather(r.Context(), f, x, questions)
	if err != nil {
		return err
	}
	return h.splice(r.Context(), w, x, newTurns(f, good), t)
}

// questions returns the list requests to members.
func (x *exchange) questions(header http.Header) ([]question, error) {
	query := copied(x.query)
	for _, key := range notPassed {
		query.Del(key)
	}
	requests, err := x.unqualified(query)
	if err != nil {
		return nil, err
	}
	all := make([]question, 0, len(requests))
	for _, a := range requests {
		inner := x.urlAt(a.member)
		inner.RawQuery = a.query.Encode()
		all = append(all, question{member: a.member, url: &inner, header: header})
	}
	return all, nil
}

// what describes the request in messages.
func (x *exchange) what() string {
	text := x.info.Verb + " " + x.info.Resource
	if x.info.APIGroup != "" {
		text += "." + x.info.APIGroup
	}
	if x.info.Namespace != "" {
		text += " in namespace " + untrusted.Excerpt(x.info.Namespace, maxText)
	}
	return untrusted.Excerpt(text, maxText)
}

// gather waits until each member has sent its status line or is late, and returns the replies that
// have something. If there are none, it returns the most useful error.
func (h *Handler) gather(ctx context.Context, f *fanout, x *exchange, questions []question) ([]*reply, *missingMembers, error) {
	t := &missingMembers{total: len(questions)}
	var good []*reply
	for _, reply := range f.ask(ctx, questions) {
		select {
		case <-reply.begun:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
		if reply.gives() && reply.err == nil {
			good = append(good, reply)
			t.say(reply.header)
			continue
		}
		t.without(reply)
	}
	if len(good) > 0 {
		return good, t, nil
	}
	return nil, nil, x.none(t)
}

// none is the error if no member returned anything.
func (x *exchange) none(t *missingMembers) error {
	switch {
	case t.failure != nil:
		return &apierrors.StatusError{ErrStatus: *t.failure}
	case len(t.unread()) > 0:
		return silence(x, t)
	case t.forbidden != nil:
		said := *t.forbidden
		said.Message = fmt.Sprintf("%s (%d of %d members refuse, none has it for you)", said.Message, len(t.refused), t.total)
		return &apierrors.StatusError{ErrStatus: said}
	case t.missing != nil:
		return &apierrors.StatusError{ErrStatus: *t.missing}
	}
	return apierrors.NewInternalError(errNobody)
}

// splice writes the items of replies, in the order of their members. A reply that breaks off ends
// the response with an error that every client detects: it is never silently incomplete. A member
// with a malformed reply is left out, with a warning, while the headers can be written.
func (h *Handler) splice(ctx context.Context, w http.ResponseWriter, x *exchange, order *turns, t *missingMembers) error {
	defer order.close()
	buffered := &bufferedWriter{w: w, before: func() { t.warn(w.Header(), x.deadline, x.what()) }}
	out := splice.NewWriter(buffered, viewv1alpha1.LabelMember, x.view.qualified)
	read := versions{}
	given := 0
	for i := range order.all {
		restore := saved(out, buffered)
		now, version, err := spliceTurn(ctx, out, order, i)
		member := now.reply.member
		switch {
		case err == nil:
			given++
			read.set(member, version)
		case buffered.flowing:
			panic(http.ErrAbortHandler)
		case splice.IsMalformed(err):
			restore()
			now.close()
			t.malformed(member, err)
		default:
			return badGateway(member, err)
		}
	}
	if given == 0 {
		return x.none(t)
	}
	plainHeaders(w.Header())
	if err := out.Close(splice.Metadata{ResourceVersion: h.cursors.publish(read, x.members)}); err != nil {
		panic(http.ErrAbortHandler)
	}
	return buffered.release()
}

// plainHeaders sets the headers of a JSON response. It must not be cached, because it belongs to
// its caller and to this moment.
func plainHeaders(h http.Header) {
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-cache, private")
	h.Set("X-Content-Type-Options", "nosniff")
}

const reasonBadGateway metav1.StatusReason = "BadGateway"

// spliceTurn writes the items of one member. A reply that breaks off before its first item is
// written is requested again, once.
func spliceTurn(ctx context.Context, out *splice.Writer, order *turns, index int) (now *turn, version string, err error) {
	now, err = order.begin(ctx, index)
	if err != nil {
		return now, "", err
	}
	restore, items := out.Save(), out.Items
	version, err = spliceOne(out, now)
	if err == nil || splice.IsMalformed(err) || now.repeated || out.Items > items {
		return now, version, err
	}
	restore()
	if err := order.again(ctx, now); err != nil {
		return now, "", err
	}
	version, err = spliceOne(out, now)
	return now, version, err
}

func spliceOne(out *splice.Writer, from *turn) (version string, err error) {
	in := splice.NewReader(from)
	if err := in.Open(); err != nil {
		return "", err
	}
	marker, err := out.Marker(from.reply.member, in)
	if err != nil {
		return "", err
	}
	for {
		item, err := in.Next()
		if errors.Is(err, io.EOF) {
			return in.Metadata.ResourceVersion, out.End(in)
		}
		if err != nil {
			return "", err
		}
		if err := out.Item(marker, item); err != nil {
			return "", err
		}
	}
}
