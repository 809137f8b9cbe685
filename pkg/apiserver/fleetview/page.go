// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver/fleetview/splice"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

const (
	// firstWave is how many members are asked first for a page. Twice as many are asked each time
	// that they had too little, or that one of them is silent for slotFor.
	firstWave = 4
	// maxPageBuffer is how much of a page is buffered until all its members have answered. Until then,
	// the headers can name the members that have not.
	maxPageBuffer = 4 << 20
	// maxMemberBuffer is how much of a member's reply is read before it is known whether it has more
	// than fits the page.
	maxMemberBuffer = 1 << 20
)

// page is one page of a list. Members are read one after the other in the order of their names, and
// requests several at a time. Items beyond the page are requested again with the next page.
type page struct {
	h        *Handler
	x        *exchange
	ask      []question
	out      *splice.Writer
	buffered *bufferedWriter
	t        missingMembers
	// read is the version at which each member was read; nil if a token lost it.
	read versions
	// pending are the members that were asked and not read yet, starting with the next; wave is how
	// many are asked after them.
	fanout  *fanout
	pending []pending
	wave    int
	// left is how many more items fit the page; next is the member where it continues, with the
	// member's token.
	left int64
	next int
	from string
	// late is true if a member needs a warning header and headers have been sent: the next page
	// begins with it.
	late bool
}

// pending is a request to a member for a page, and its limit.
type pending struct {
	reply    *reply
	question question
	limit    int64
}

// limitOf is the maximum number of items that the caller wants; 0 is all.
func limitOf(query url.Values) (int64, error) {
	text := query.Get("limit")
	if text == "" {
		return 0, nil
	}
	limit, err := strconv.ParseInt(text, 10, 64)
	if err != nil || limit < 0 {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("limit %q is not a number of items", untrusted.Excerpt(text, maxText)))
	}
	return limit, nil
}

// page answers with at most limit items.
func (h *Handler) page(w http.ResponseWriter, r *http.Request, x *exchange, questions []question, limit int64, begin *token) error {
	buffered := &bufferedWriter{w: w}
	p := &page{
		h: h, x: x, ask: questions, left: limit, buffered: buffered, read: versions{}, wave: firstWave,
		fanout: h.newFanout(r, x.request.view, x.deadline),
		out:    splice.NewWriter(buffered, viewv1alpha1.LabelMember, x.view.qualified),
	}
	defer p.fanout.close()
	buffered.before = func() { p.t.warn(w.Header(), x.deadline, x.what()) }
	if begin != nil {
		if err := p.resume(begin); err != nil {
			return err
		}
	}
	for p.next < len(p.ask) && p.left > 0 && !p.late {
		if err := p.one(r.Context()); err != nil {
			return p.broken(err)
		}
	}
	return p.end()
}

// resume begins where a token says.
func (p *page) resume(at *token) error {
	p.next, _ = slices.BinarySearchFunc(p.ask, at.Member, func(q question, member string) int {
		return bytes.Compare([]byte(q.member), []byte(member))
	})
	if at.Continue != "" {
		if p.next == len(p.ask) || p.ask[p.next].member != at.Member {
			return errExpired(at.Member, "has left")
		}
		p.from = at.Continue
	}
	p.read = nil
	if at.Read != "" {
		var err error
		p.read, err = p.h.cursors.versionsOf(at.Read, p.x.members)
		switch _, isCursor := strconv.ParseUint(at.Read, 10, 64); {
		case err == nil:
		case isCursor == nil:
			p.read = nil // This replica does not know it.
		default:
			return err
		}
	}
	if err := p.out.Continue(at.Shape); err != nil {
		return apierrors.NewBadRequest("continue key is not valid: it has other columns than any that a view of the fleet gave")
	}
	return nil
}

// broken ends a page that cannot be continued. A response that has begun ends with an error that
// every client detects.
func (p *page) broken(err error) error {
	if p.buffered.flowing {
		panic(http.ErrAbortHandler)
	}
	return err
}

// one reads the next member.
func (p *page) one(ctx context.Context) error {
	if len(p.pending) == 0 {
		p.askMore(ctx)
	}
	now := p.pending[0]
	more, err := p.member(ctx, now.reply, now.question, now.limit)
	if err != nil {
		return err
	}
	if more {
		for _, of := range p.pending {
			of.reply.close()
		}
		p.pending = nil
		return nil
	}
	p.pending = p.pending[1:]
	p.next, p.from = p.next+1, ""
	return nil
}

// askMore asks a wave of members after those that were asked.
func (p *page) askMore(ctx context.Context) {
	begin := p.next + len(p.pending)
	wave := p.ask[begin:min(begin+p.wave, len(p.ask))]
	p.wave = min(2*p.wave, p.h.parallel)
	requests := make([]question, len(wave))
	for i, q := range wave {
		from := ""
		if begin+i == p.next {
			from = p.from
		}
		requests[i] = limited(q, p.left, from)
		requests[i].narrow = begin > p.next
	}
	for i, reply := range p.fanout.ask(ctx, requests) {
		p.pending = append(p.pending, pending{reply: reply, question: requests[i], limit: p.left})
	}
}

// await returns when a member has begun to answer. While it is silent, more and more of the others
// are asked, so that many unresponsive members cost little more than one.
func (p *page) await(ctx context.Context, of *reply) error {
	for {
		select {
		case <-of.begun:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(slotFor):
			p.askMore(ctx)
		}
	}
}

// limited is the request for a part of a member's list.
func limited(q question, limit int64, from string) question {
	query := q.url.Query()
	query.Set("limit", strconv.FormatInt(limit, 10))
	if from != "" {
		query.Set("continue", from)
	}
	inner := *q.url
	inner.RawQuery = query.Encode()
	q.url = &inner
	return q
}

// member adds a member's reply. The member has more if the page, or the wave, ends within it.
func (p *page) member(ctx context.Context, reply *reply, q question, limit int64) (more bool, err error) {
	if err := p.await(ctx, reply); err != nil {
		return false, err
	}
	p.t.total++
	if reply.code != http.StatusOK || reply.err != nil {
		if p.late = p.buffered.flowing && reply.code != http.StatusNotFound; p.late {
			return true, nil
		}
		return false, p.without(reply)
	}
	p.t.say(reply.header)
	restore, items, left := saved(p.out, p.buffered), p.out.Items, p.left
	more, err = p.add(ctx, reply, q, limit)
	if !splice.IsMalformed(err) {
		return more, err
	}
	reply.close()
	if p.buffered.flowing {
		if p.out.Items > items {
			return false, badGateway(reply.member, err)
		}
		p.late = true
		return true, nil
	}
	restore()
	p.left = left
	if p.from != "" {
		delete(p.read, reply.member)
	}
	p.t.malformed(reply.member, err)
	return false, nil
}

// add writes the items of a member's reply.
func (p *page) add(ctx context.Context, reply *reply, q question, limit int64) (more bool, err error) {
	in := splice.NewReader(reply)
	if err := in.Open(); err != nil {
		return false, unlessMalformed(reply.member, err)
	}
	marker, err := p.out.Marker(reply.member, in)
	if err != nil {
		return false, unlessMalformed(reply.member, err)
	}
	if limit > p.left {
		fits, err := p.whole(in, marker)
		if err != nil {
			return false, unlessMalformed(reply.member, err)
		}
		if !fits {
			reply.close()
			again := p.fanout.ask(ctx, []question{limited(q, p.left, "")})[0]
			p.t.total--
			return p.member(ctx, again, q, p.left)
		}
	} else if err := p.flow(in, marker); err != nil {
		return false, unlessMalformed(reply.member, err)
	}
	if err := p.out.End(in); err != nil {
		return false, badGateway(reply.member, err)
	}
	if p.read != nil {
		p.read.set(reply.member, in.Metadata.ResourceVersion)
	}
	p.from = in.Metadata.Continue
	return p.from != "", nil
}

// unlessMalformed is the error that ends a response, except for a malformed reply, which need not.
func unlessMalformed(member string, err error) error {
	if splice.IsMalformed(err) {
		return err
	}
	return badGateway(member, err)
}

// without records a member that returned nothing. If the member rejects its token, the list ends,
// as a single member's list does. A member that gave a part with the previous page and then fails
// was not read: a later watch has to send its objects.
func (p *page) without(reply *reply) error {
	if p.from != "" {
		delete(p.read, reply.member)
	}
	switch code := reply.code; {
	case code == http.StatusGone && p.from != "":
		return errExpired(reply.member, "has compacted the position of the list")
	case code == http.StatusBadRequest && p.from != "":
		return errExpired(reply.member, "does not accept the position of the list any more")
	}
	p.t.without(reply)
	return nil
}

// flow writes items as they come; there are never more than fit the page.
func (p *page) flow(in *splice.Reader, marker *splice.Marker) error {
	for {
		item, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if p.left--; p.left < 0 {
			return errors.New("it gave more than it was asked for")
		}
		if err := p.out.Item(marker, item); err != nil {
			return err
		}
	}
}

// whole writes all items if the page has room for them, and none otherwise.
func (p *page) whole(in *splice.Reader, marker *splice.Marker) (fits bool, err error) {
	var items [][]byte
	size := 0
	for {
		item, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return false, err
		}
		if size += len(item); int64(len(items)) >= p.left || size > maxMemberBuffer {
			return false, nil
		}
		items = append(items, bytes.Clone(item))
	}
	p.left -= int64(len(items))
	for _, item := range items {
		if err := p.out.Item(marker, item); err != nil {
			return false, err
		}
	}
	return true, nil
}

// end writes the metadata of the list, with the token of the next page.
func (p *page) end() error {
	shape, err := p.out.Shape()
	if err != nil {
		return p.broken(apierrors.NewInternalError(err))
	}
	if shape.Kind == "" {
		return p.x.none(&p.t)
	}
	var metadata splice.Metadata
	if p.read != nil {
		metadata.ResourceVersion = p.h.cursors.publish(p.read, p.x.members)
	}
	if p.next < len(p.ask) {
		metadata.Continue, err = token{Of: p.x.listKey(), Member: p.ask[p.next].member, Continue: p.from, Shape: shape, Read: metadata.ResourceVersion}.encode()
		if err != nil {
			return p.broken(badGateway(p.ask[p.next].member, err))
		}
	}
	plainHeaders(p.buffered.w.Header())
	if err := p.out.Close(metadata); err != nil {
		panic(http.ErrAbortHandler)
	}
	return p.buffered.release()
}

// bufferedWriter buffers the beginning of a response, so that its headers can be written last.
type bufferedWriter struct {
	w        http.ResponseWriter
	before   func()
	buffered bytes.Buffer
	// flowing is true once the headers have been sent.
	flowing bool
}

// Write buffers up to a limit.
func (h *bufferedWriter) Write(b []byte) (int, error) {
	if h.flowing {
		return h.w.Write(b)
	}
	if h.buffered.Len()+len(b) <= maxPageBuffer {
		return h.buffered.Write(b)
	}
	plainHeaders(h.w.Header())
	if err := h.release(); err != nil {
		return 0, err
	}
	return h.w.Write(b)
}

// saved returns a function that takes back what is written from now on. It must not be called once
// the response flows.
func saved(out *splice.Writer, buffered *bufferedWriter) (restore func()) {
	writer, length := out.Save(), buffered.buffered.Len()
	return func() {
		writer()
		buffered.buffered.Truncate(length)
	}
}

// release sends what was buffered.
func (h *bufferedWriter) release() error {
	if h.flowing {
		return nil
	}
	h.flowing = true
	h.before()
	_, err := h.w.Write(h.buffered.Bytes())
	h.buffered = bytes.Buffer{}
	return ignoreGone(err)
}
