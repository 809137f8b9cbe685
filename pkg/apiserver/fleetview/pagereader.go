// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
)

// firstWave is how many members get a request for a page first. Twice as many get one each time that
// they had too little, or that one of them does not respond for slotFor.
const firstWave = 4

// pageReader requests what members have for a page, several at a time, and returns their replies in
// the order of the members' names. Items beyond the page are requested again with the next page.
type pageReader struct {
	fanout   *fanout
	requests []memberRequest
	// next is the member where the page continues, from its own continue token.
	next int
	from string
	// pending are the requests in flight, starting with that to the next member; wave is how many
	// follow them.
	pending []pageReply
	wave    int
}

// pageReply is the reply of a member to a request for at most limit items.
type pageReply struct {
	*reply
	limit int64
}

// resume continues at a member, or at the next one if it has left.
func (p *pageReader) resume(member, from string) error {
	var found bool
	p.next, found = slices.BinarySearchFunc(p.requests, member, func(q memberRequest, member string) int { return strings.Compare(q.member, member) })
	if from != "" && !found {
		return errExpired(member, "has left")
	}
	p.from = from
	return nil
}

// done is true after the last member.
func (p *pageReader) done() bool { return p.next == len(p.requests) }

// reply returns the reply of the next member, which has begun. The page has room for so many items.
// While the member does not respond, more and more of the others get a request, so that many
// unresponsive members cost little more than one.
func (p *pageReader) reply(ctx context.Context, room int64) (pageReply, error) {
	if len(p.pending) == 0 {
		p.sendMore(ctx, room)
	}
	for {
		select {
		case <-p.pending[0].begun:
			return p.pending[0], nil
		case <-ctx.Done():
			return pageReply{}, ctx.Err()
		case <-time.After(slotFor):
			p.sendMore(ctx, room)
		}
	}
}

// again requests the items of the next member again, for the room that is left.
func (p *pageReader) again(ctx context.Context, room int64) {
	now := p.pending[0]
	now.close()
	p.pending[0] = pageReply{reply: p.fanout.send(ctx, []memberRequest{limited(p.requests[p.next], room, "")})[0], limit: room}
}

// advance continues with the first item of the member after.
func (p *pageReader) advance() { p.next, p.from, p.pending = p.next+1, "", p.pending[1:] }

// stop drops the replies of later members.
func (p *pageReader) stop() {
	for _, of := range p.pending {
		of.close()
	}
	p.pending = nil
}

// sendMore sends requests to a wave of members after those with a request in flight.
func (p *pageReader) sendMore(ctx context.Context, room int64) {
	begin := p.next + len(p.pending)
	wave := p.requests[begin:min(begin+p.wave, len(p.requests))]
	p.wave = min(2*p.wave, p.fanout.handler.parallel)
	requests := make([]memberRequest, len(wave))
	for i, request := range wave {
		from := ""
		if begin+i == p.next {
			from = p.from
		}
		requests[i] = limited(request, room, from)
		requests[i].narrow = begin > p.next
	}
	for _, reply := range p.fanout.send(ctx, requests) {
		p.pending = append(p.pending, pageReply{reply: reply, limit: room})
	}
}

// limited is the request for a part of a member's list.
func limited(request memberRequest, limit int64, from string) memberRequest {
	query := request.url.Query()
	query.Set("limit", strconv.FormatInt(limit, 10))
	if from != "" {
		query.Set("continue", from)
	}
	inner := *request.url
	inner.RawQuery = query.Encode()
	request.url = &inner
	return request
}
