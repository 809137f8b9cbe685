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

	"fleetgate.io/fleetgate/pkg/apiserver/fleetview/splice"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// notPassed are parameters that mean something else, or nothing, to one member.
var notPassed = []string{"limit", "continue", "resourceVersion", "resourceVersionMatch"}

// list writes the items of all members.
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
	requests, err := x.memberRequests(header)
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
		return h.page(w, r, x, requests, limit, begin)
	}
	if streams {
		return h.stream(w, r, x, requests)
	}
	f := h.newFanout(r, x.request.view, x.deadline)
	defer f.close()
	good, missing, err := h.gather(r.Context(), f, x, requests)
	if err != nil {
		return err
	}
	return h.splice(r.Context(), w, x, newTurns(f, good), missing)
}

// memberRequests returns the list requests to members.
func (x *exchange) memberRequests(header http.Header) ([]memberRequest, error) {
	candidates, err := x.unqualified(withoutVersions(x.query))
	if err != nil {
		return nil, err
	}
	all := make([]memberRequest, 0, len(candidates))
	for _, c := range candidates {
		inner := x.urlAt(c.member)
		inner.RawQuery = c.query.Encode()
		all = append(all, memberRequest{member: c.member, url: &inner, header: header})
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
func (h *Handler) gather(ctx context.Context, f *fanout, x *exchange, requests []memberRequest) ([]*reply, *missingMembers, error) {
	missing := &missingMembers{total: len(requests)}
	var good []*reply
	for _, reply := range f.send(ctx, requests) {
		select {
		case <-reply.begun:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
		if reply.successful() && reply.err == nil {
			good = append(good, reply)
			missing.warned(reply.header)
			continue
		}
		missing.without(reply)
	}
	if len(good) > 0 {
		return good, missing, nil
	}
	return nil, nil, x.none(missing)
}

// none is the error if no member returned anything.
func (x *exchange) none(t *missingMembers) error {
	switch {
	case t.failure != nil:
		return &apierrors.StatusError{ErrStatus: *t.failure}
	case len(t.unread()) > 0:
		return unread(x, t)
	case t.forbidden != nil:
		forbidden := *t.forbidden
		forbidden.Message = fmt.Sprintf("%s (%d of %d members refuse, none has it for you)", forbidden.Message, len(t.refused), t.total)
		return &apierrors.StatusError{ErrStatus: forbidden}
	case t.missing != nil:
		return &apierrors.StatusError{ErrStatus: *t.missing}
	}
	return apierrors.NewInternalError(errNoReply)
}

// splice writes the items of replies, in the order of their members. A reply that breaks off ends
// the response with an error that every client detects: it is never incomplete without saying so. A member
// with a malformed reply is left out, with a warning, while the headers can be written.
func (h *Handler) splice(ctx context.Context, w http.ResponseWriter, x *exchange, order *turns, missing *missingMembers) error {
	defer order.close()
	out := newListWriter(w, x.view.qualified, func(header http.Header) { missing.warn(header, x.deadline, x.what()) })
	read := versions{}
	written := 0
	for i := range order.all {
		restore := out.save()
		now, version, err := spliceTurn(ctx, out, order, i)
		member := now.reply.member
		switch {
		case err == nil:
			written++
			read.set(member, version)
		case out.sent:
			panic(http.ErrAbortHandler)
		case splice.IsMalformed(err):
			restore()
			now.close()
			missing.malformed(member, err)
		default:
			return badGateway(member, err)
		}
	}
	if written == 0 {
		return x.none(missing)
	}
	return out.finish(splice.Metadata{ResourceVersion: h.cursors.publish(read, x.members)})
}

// plainHeaders sets the headers of a JSON response. It must not be cached, because it belongs to
// its caller and to this moment.
func plainHeaders(h http.Header) {
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-cache, private")
	h.Set("X-Content-Type-Options", "nosniff")
}

// spliceTurn writes the items of one member. A reply that breaks off before its first item is
// written is requested again, once.
func spliceTurn(ctx context.Context, out *listWriter, order *turns, index int) (now *turn, version string, err error) {
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

func spliceOne(out *listWriter, from *turn) (version string, err error) {
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
