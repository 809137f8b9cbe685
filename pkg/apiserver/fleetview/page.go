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
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"fleetgate.io/fleetgate/pkg/apiserver/fleetview/splice"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// maxMemberBuffer is how much of a member's reply is read before it is known whether it has more
// than fits the page.
const maxMemberBuffer = 1 << 20

// page is one page of a list. It takes members' replies from the reader, one after the other in the
// order of the members' names, and writes as many items as fit.
type page struct {
	x       *exchange
	cursors *cursors
	reader  *pageReader
	out     *listWriter
	missing missingMembers
	// read is the version at which each member was read; nil if a token lost it.
	read versions
	// room is how many more items fit the page.
	room int64
	// late is true if a member needs a warning header and headers have been sent: the next page
	// begins with it.
	late bool
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

func (h *Handler) page(w http.ResponseWriter, r *http.Request, x *exchange, requests []memberRequest, limit int64, begin *token) error {
	f := h.newFanout(r, x.request.view, x.deadline)
	defer f.close()
	p := &page{x: x, cursors: h.cursors, room: limit, read: versions{}, reader: &pageReader{fanout: f, requests: requests, wave: firstWave}}
	p.out = newListWriter(w, x.view.qualified, func(header http.Header) { p.missing.warn(header, x.deadline, x.what()) })
	if begin != nil {
		if err := p.resume(begin); err != nil {
			return err
		}
	}
	for !p.reader.done() && p.room > 0 && !p.late {
		if err := p.one(r.Context()); err != nil {
			return p.out.fail(err)
		}
	}
	return p.end()
}

// resume begins where a token says.
func (p *page) resume(at *token) error {
	if err := p.reader.resume(at.Member, at.Continue); err != nil {
		return err
	}
	p.read = nil
	if at.Read != "" {
		var err error
		p.read, err = p.cursors.versionsOf(at.Read, p.x.members)
		switch _, isCursor := strconv.ParseUint(at.Read, 10, 64); {
		case err == nil:
		case isCursor == nil:
			p.read = nil // This replica does not know it.
		default:
			return err
		}
	}
	if err := p.out.Continue(at.Shape); err != nil {
		return apierrors.NewBadRequest("continue key is not valid: it has other columns than any token of a view of the fleet")
	}
	return nil
}

// one adds the next member. The member has more if the page, or the wave, ends within it.
func (p *page) one(ctx context.Context) error {
	now, err := p.reader.reply(ctx, p.room)
	if err != nil {
		return err
	}
	more, again, err := p.member(now)
	switch {
	case err != nil:
		return err
	case again:
		p.reader.again(ctx, p.room)
	case more:
		p.reader.stop()
	default:
		p.reader.advance()
	}
	return nil
}

// member adds a member's reply. The reply has to be requested again if more items were requested than
// the page has room for now, and the member has them.
func (p *page) member(of pageReply) (more, again bool, err error) {
	p.missing.total++
	if !of.ok() {
		if p.late = p.out.sent && of.code != http.StatusNotFound; p.late {
			return true, false, nil
		}
		return false, false, p.without(of.reply)
	}
	p.missing.warned(of.header)
	restore, items, room := p.out.save(), p.out.Items, p.room
	more, again, err = p.add(of)
	switch {
	case again:
		p.missing.total--
		return false, true, nil
	case err == nil:
		return more, false, nil
	case !splice.IsMalformed(err):
		return false, false, badGateway(of.member, err)
	}
	of.close()
	if p.out.sent {
		if p.out.Items > items {
			return false, false, badGateway(of.member, err)
		}
		p.late = true
		return true, false, nil
	}
	restore()
	p.room = room
	p.forget(of.member)
	p.missing.malformed(of.member, err)
	return false, false, nil
}

// forget drops the version of a member that failed after a part of it was in the previous page. It was
// not read: a later watch has to send its objects.
func (p *page) forget(member string) {
	if p.reader.from != "" {
		delete(p.read, member)
	}
}

func (p *page) add(of pageReply) (more, again bool, err error) {
	in := splice.NewReader(of)
	if err := in.Open(); err != nil {
		return false, false, err
	}
	marker, err := p.out.Marker(of.member, in)
	if err != nil {
		return false, false, err
	}
	if of.limit > p.room {
		fits, err := p.whole(in, marker)
		if err != nil || !fits {
			return false, !fits, err
		}
	} else if err := p.flow(in, marker); err != nil {
		return false, false, err
	}
	if err := p.out.End(in); err != nil {
		return false, false, err
	}
	if p.read != nil {
		p.read.set(of.member, in.Metadata.ResourceVersion)
	}
	p.reader.from = in.Metadata.Continue
	return p.reader.from != "", false, nil
}

// without records a member that returned nothing. If the member rejects its token, the list ends,
// as a single member's list does.
func (p *page) without(of *reply) error {
	p.forget(of.member)
	switch code := of.code; {
	case code == http.StatusGone && p.reader.from != "":
		return errExpired(of.member, "has compacted the position of the list")
	case code == http.StatusBadRequest && p.reader.from != "":
		return errExpired(of.member, "does not accept the position of the list any more")
	}
	p.missing.without(of)
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
		if p.room--; p.room < 0 {
			return errors.New("it gave more items than were requested")
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
			return true, err
		}
		if size += len(item); int64(len(items)) >= p.room || size > maxMemberBuffer {
			return false, nil
		}
		items = append(items, bytes.Clone(item))
	}
	p.room -= int64(len(items))
	for _, item := range items {
		if err := p.out.Item(marker, item); err != nil {
			return true, err
		}
	}
	return true, nil
}

// end writes the metadata of the list, with the token of the next page.
func (p *page) end() error {
	shape, err := p.out.Shape()
	if err != nil {
		return p.out.fail(apierrors.NewInternalError(err))
	}
	if shape.Kind == "" {
		return p.x.none(&p.missing)
	}
	var metadata splice.Metadata
	if p.read != nil {
		metadata.ResourceVersion = p.cursors.publish(p.read, p.x.members)
	}
	if !p.reader.done() {
		next := p.reader.requests[p.reader.next].member
		metadata.Continue, err = token{Of: p.x.listKey(), Member: next, Continue: p.reader.from, Shape: shape, Read: metadata.ResourceVersion}.encode()
		if err != nil {
			return p.out.fail(badGateway(next, err))
		}
	}
	return p.out.finish(metadata)
}
