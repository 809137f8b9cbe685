// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// An HTTP/2 connection always reads: a tunnel and its limits do not see what the readers of the
// replies have not taken yet. Each reply has a window in the gateway instead, and nothing shows how
// full it is. So a reply whose reader is behind counts with its whole window.

const (
	// windowShort is the window of a reply to a short request: 10 MB/s on a link of 100 ms.
	windowShort = 1 << 20
	// windowLong is the window of a long-running reply. Callers may have thousands of them.
	windowLong = 256 << 10
	// windowNarrow is the window of a reply when many members get the same request. It is the
	// minimum of net/http, whose default is 4 MiB.
	windowNarrow = 64 << 10
)

const (
	// behindAfter is how long a reader may be behind before its reply counts.
	behindAfter = time.Second
	// checkEvery is the interval of checks while there are replies.
	checkEvery = time.Second
)

// errSlowReader is why the gateway ends a reply whose reader takes too little of it.
var errSlowReader = errors.New("the reader was too slow, and the gateway buffers only a limited amount")

// SlowReaders limits the bytes that the gateway buffers for readers that are behind: for the replies
// of one member, for those of one user, and for all. Above a limit, the gateway ends the replies
// whose readers have not taken anything for the longest time.
type SlowReaders struct {
	PerMember, PerUser, Total int64
}

// The limits that a gateway has by default.
const (
	DefaultUnreadPerMember = 128 << 20
	DefaultUnreadPerUser   = 128 << 20
	DefaultUnread          = 256 << 20
)

func (l SlowReaders) orDefault() SlowReaders {
	return SlowReaders{
		PerMember: cmp.Or(l.PerMember, DefaultUnreadPerMember),
		PerUser:   cmp.Or(l.PerUser, DefaultUnreadPerUser),
		Total:     cmp.Or(l.Total, DefaultUnread),
	}
}

// slowReaders applies SlowReaders to the replies in flight.
type slowReaders struct {
	limits  SlowReaders
	metrics *metrics
	// mu guards the fields below.
	mu sync.Mutex
	// replies are checked every checkEvery while there are any.
	replies map[*bufferedBody]struct{}
	// scheduled is set while the next check is scheduled. Without it, each reply that is alone would start
	// checks of its own, which continue while others follow it.
	scheduled bool
}

func newSlowReaders(limits SlowReaders, metrics *metrics) *slowReaders {
	return &slowReaders{limits: limits.orDefault(), metrics: metrics, replies: map[*bufferedBody]struct{}{}}
}

// follow wraps the body of a reply that has a window. A reply over HTTP/1.1 has none: its tunnel
// limits what is not read.
func (s *slowReaders) follow(res *http.Response, x *exchange, window int) {
	if res.ProtoMajor != 2 || x == nil || res.ContentLength == 0 {
		return
	}
	body := &bufferedBody{ReadCloser: res.Body, readers: s, exchange: x, window: int64(window)}
	if res.ContentLength > 0 {
		body.window = min(body.window, res.ContentLength)
	}
	now := time.Now().UnixNano()
	body.caughtUp.Store(now)
	body.progress.Store(now)
	res.Body = body
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies[body] = struct{}{}
	s.schedule()
}

// schedule schedules the next check if there is none and there are replies. The caller holds mu.
func (s *slowReaders) schedule() {
	if !s.scheduled && len(s.replies) > 0 {
		s.scheduled = true
		time.AfterFunc(checkEvery, s.check)
	}
}

func (s *slowReaders) forget(body *bufferedBody) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.replies, body)
}

// check ends the slowest replies if there are too many of them.
func (s *slowReaders) check() {
	cut := map[string]int{}
	var unread int64
	byMember, byUser := map[string]int64{}, map[string]int64{}
	for _, body := range s.behind() {
		member, user, n := body.exchange.request.Member, body.exchange.caller.GetName(), body.window
		switch {
		case byMember[member]+n > s.limits.PerMember:
			s.end(body, limitMember, cut)
			continue
		case byUser[user]+n > s.limits.PerUser:
			s.end(body, limitUser, cut)
			continue
		case unread+n > s.limits.Total:
			s.end(body, limitTotal, cut)
			continue
		}
		unread += n
		byMember[member] += n
		byUser[user] += n
	}
	s.metrics.unread.Set(float64(unread))
	for user, count := range cut {
		klog.Background().Info("Ended replies whose readers were too slow", "user", untrusted.Excerpt(user, maxRecorded), "replies", count)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scheduled = false
	s.schedule()
}

// behind returns the replies that count, starting with the one whose reader took something last.
func (s *slowReaders) behind() []*bufferedBody {
	type reading struct {
		body     *bufferedBody
		progress int64
	}
	before := time.Now().Add(-behindAfter).UnixNano()
	s.mu.Lock()
	var behind []reading
	for body := range s.replies {
		if !body.waiting.Load() && body.caughtUp.Load() <= before {
			behind = append(behind, reading{body, body.progress.Load()})
		}
	}
	s.mu.Unlock()
	slices.SortFunc(behind, func(a, b reading) int { return cmp.Compare(b.progress, a.progress) })
	bodies := make([]*bufferedBody, len(behind))
	for i, r := range behind {
		bodies[i] = r.body
	}
	return bodies
}

// end drops what is buffered for a reader. What the caller gets instead is up to cutReply, once it
// reads again.
func (s *slowReaders) end(body *bufferedBody, limit string, cut map[string]int) {
	body.exchange.cut.Store(&errSlowReader)
	s.forget(body)
	s.metrics.slowReaders.WithLabelValues(limit).Inc()
	cut[body.exchange.caller.GetName()]++
	// Close writes to the connection, which may be stuck until its ping times out.
	go func() { _ = body.ReadCloser.Close() }()
}

// bufferedBody is the body of a reply that keeps track of whether its reader is behind.
type bufferedBody struct {
	io.ReadCloser
	readers  *slowReaders
	exchange *exchange
	// window is how much the gateway may buffer of it.
	window int64
	// waiting is true while the reader waits for the member.
	waiting atomic.Bool
	// caughtUp is when the reader last took all that there was, progress when it last took
	// something, in nanoseconds.
	caughtUp, progress atomic.Int64
}

// Read reads all that is buffered if b has room for it.
func (b *bufferedBody) Read(p []byte) (int, error) {
	b.waiting.Store(true)
	n, err := b.ReadCloser.Read(p)
	now := time.Now().UnixNano()
	b.progress.Store(now)
	if n < len(p) {
		b.caughtUp.Store(now)
	}
	b.waiting.Store(false)
	if err != nil {
		b.readers.forget(b) // Nothing is buffered after the end.
	}
	return n, err
}

func (b *bufferedBody) Close() error {
	b.readers.forget(b)
	return b.ReadCloser.Close()
}
