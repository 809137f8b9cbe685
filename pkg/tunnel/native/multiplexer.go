// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fleetgate.io/fleetgate/pkg/tunnel/budget"
)

const (
	// pingInterval is the mean time between two pings. Each wait varies by a fifth in both
	// directions, so that a thousand sessions do not ping at the same time.
	pingInterval = 10 * time.Second
	// acceptBacklog is how many streams may wait to be accepted; further streams are reset.
	acceptBacklog = 256
	// defaultMaxStreams limits the streams of a session in each direction.
	defaultMaxStreams = 4096
	// firstRoundTrip is the assumed round trip until one is measured.
	firstRoundTrip = time.Millisecond
	// firstPings are sent one after the other at the beginning of a session; keptTrips is how many
	// round trips are kept.
	firstPings, keptTrips = 4, 8
	// MaxInfo is the length of the longest message about a session.
	MaxInfo = 32 << 10
)

// Side says which end of the connection a multiplexer is. It only decides the numbers of streams;
// either side can open them.
type Side int

const (
	// Gateway is the side in the hub's gateway.
	Gateway Side = iota
	// Agent is the side on the member.
	Agent
)

// Options tune a multiplexer; zero values are sane.
type Options struct {
	// MaxStreams limits the streams that this side may open, and those that the peer may open, at a
	// time; 0 is 4096.
	MaxStreams int
	// Budget limits the unread data of all multiplexers that share it, in addition to the 64 MiB of
	// each session; nil is no shared limit.
	Budget *budget.Budget
}

// Multiplexer is one session: it multiplexes streams over one connection. All methods may be called from
// any goroutine.
type Multiplexer struct {
	wire    *wire
	out     *writer
	budgets budgets
	// probes check whether the peer lives.
	probes probes
	max    int
	// odd is 1 if the streams that this side opens have odd numbers, 0 if even.
	odd uint32

	accepts chan *Stream
	// infos holds the peer's latest message.
	infos chan []byte
	// done is closed when the session has ended, draining when the peer wants no more streams.
	done, draining chan struct{}

	// trips are the latest round trips in nanoseconds, pongs counts them; only the receiving
	// goroutine uses them. shortestTrip is 0 until one was measured.
	trips        [keptTrips]int64
	pongs        int
	shortestTrip atomic.Int64

	// mu guards the following fields. A stream's lock is never taken under it.
	mu      sync.Mutex
	streams map[uint32]*Stream
	next    uint32
	// opened and accepted count the streams by who opened them.
	opened, accepted int
	drains           bool
	cause            error

	// background counts the goroutines of this multiplexer, Close waits for them.
	background sync.WaitGroup
}

// New starts a session on conn, which the multiplexer owns from here on.
func New(conn net.Conn, side Side, o Options) *Multiplexer {
	c := &Multiplexer{
		wire:     newWire(conn),
		budgets:  budgets{session: budget.New(sessionBudget), process: o.Budget},
		max:      o.MaxStreams,
		accepts:  make(chan *Stream, acceptBacklog),
		infos:    make(chan []byte, 1),
		done:     make(chan struct{}),
		draining: make(chan struct{}),
		streams:  map[uint32]*Stream{},
		odd:      1,
		next:     1,
	}
	if side == Agent {
		c.odd, c.next = 0, 2
	}
	if c.max <= 0 {
		c.max = defaultMaxStreams
	}
	c.out = &writer{wire: c.wire, fail: c.fail, kick: make(chan struct{}, 1)}
	c.background.Go(c.receive)
	c.background.Go(c.transmit)
	return c
}

// Open opens a stream to the peer that begins with first, at most 32 KiB. It does not wait: both
// ends negotiate in the stream whether the peer accepts it. It fails with [ErrTooManyStreams],
// [ErrDraining] or [ErrSessionClosed], or when ctx has ended.
func (c *Multiplexer) Open(ctx context.Context, first []byte) (net.Conn, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if len(first) > MaxInfo {
		return nil, fmt.Errorf("opening a stream with %d bytes, %d are allowed", len(first), MaxInfo)
	}
	s, err := c.add()
	if err != nil {
		return nil, err
	}
	s.credit -= len(first)
	c.out.control(kindOpen, s.id, first)
	return s, nil
}

// add creates a stream of this side.
func (c *Multiplexer) add() (*Stream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.cause != nil:
		return nil, c.closedLocked()
	case c.drains:
		return nil, ErrDraining
	case c.opened >= c.max:
		return nil, ErrTooManyStreams
	}
	// The numbers wrap around after two billion streams; a few may still be in use.
	for c.streams[c.next] != nil {
		c.advance()
	}
	s := newStream(c, c.next)
	c.streams[s.id] = s
	c.advance()
	c.opened++
	return s, nil
}

// advance moves to the next number of this side; no stream has number 0.
func (c *Multiplexer) advance() {
	if c.next += 2; c.next == 0 {
		c.next = 2
	}
}

// Accept waits for the peer's next stream. It ends with an error for which errors.Is(err,
// ErrSessionClosed) when the session does.
func (c *Multiplexer) Accept(ctx context.Context) (net.Conn, error) {
	select {
	case s := <-c.accepts:
		return s, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-c.done:
		return nil, c.Err()
	}
}

// Drain asks the peer to open no more streams. Open streams continue, and streams that the peer has
// opened in the meantime are accepted.
func (c *Multiplexer) Drain() { c.out.control(kindGoAway, 0, nil) }

// Draining is closed when the peer has asked for no more streams.
func (c *Multiplexer) Draining() <-chan struct{} { return c.draining }

// SendInfo sends the peer a message about the session, at most MaxInfo bytes. Only the latest counts.
func (c *Multiplexer) SendInfo(info []byte) {
	c.out.control(kindInfo, 0, info[:min(len(info), MaxInfo)])
}

// Infos receives the peer's latest unread message.
func (c *Multiplexer) Infos() <-chan []byte { return c.infos }

// Streams is the number of open streams, including those that only one side has closed.
func (c *Multiplexer) Streams() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.streams)
}

// Unread is the number of unread bytes in the session's streams.
func (c *Multiplexer) Unread() int64 { return c.budgets.session.Used() }

// Close ends the session and all its streams and waits for its goroutines.
func (c *Multiplexer) Close() error {
	c.fail(errLocalClosed)
	c.background.Wait()
	// Streams that were not accepted have no other owner that closes them.
	for {
		select {
		case s := <-c.accepts:
			_ = s.Close()
		default:
			return nil
		}
	}
}

// Done is closed when the session has ended.
func (c *Multiplexer) Done() <-chan struct{} { return c.done }

// Err says why the session ended, nil while it lasts. errors.Is(err, ErrSessionClosed) holds for
// every reason.
func (c *Multiplexer) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closedLocked()
}

func (c *Multiplexer) closedLocked() error {
	if c.cause == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrSessionClosed, c.cause)
}

// fail ends the session; the first reason counts. That this side has closed the connection is no
// reason, because something else caused that.
func (c *Multiplexer) fail(cause error) {
	c.mu.Lock()
	if c.cause != nil {
		c.mu.Unlock()
		return
	}
	if errors.Is(cause, io.EOF) || errors.Is(cause, io.ErrUnexpectedEOF) || isLocalClose(cause) {
		cause = errPeerClosed
	}
	c.cause = cause
	err := c.closedLocked()
	streams := c.streams
	c.streams = map[uint32]*Stream{}
	c.opened, c.accepted = 0, 0
	c.mu.Unlock()
	close(c.done)
	for _, s := range streams {
		s.fail(err, false)
	}
	c.wire.cut()
}

// transmit sends frames that no writer waits for, and a ping about every pingInterval. The wire
// detects a dead peer.
func (c *Multiplexer) transmit() {
	c.ping()
	timer := time.NewTimer(nextPing())
	defer timer.Stop()
	for {
		select {
		case <-c.out.kick:
			c.out.flush()
		case <-timer.C:
			c.ping()
			timer.Reset(nextPing())
		case <-c.done:
			return
		}
	}
}

func nextPing() time.Duration {
	return time.Duration((0.8 + 0.4*rand.Float64()) * float64(pingInterval))
}

// ping carries the time at which it is sent; the response returns it.
func (c *Multiplexer) ping() {
	var payload [pingSize]byte
	binary.BigEndian.PutUint64(payload[:], uint64(time.Now().UnixNano()))
	c.out.control(kindPing, 0, payload[:])
}

// ponged records a round trip. Queues can only lengthen it, so the shortest of the latest counts.
// The first few pings follow each other immediately, while the connection is still idle.
func (c *Multiplexer) ponged(payload []byte) {
	measured := time.Now().UnixNano() - int64(binary.BigEndian.Uint64(payload))
	if measured <= 0 || measured > int64(time.Minute) {
		return // not a response to this side's ping
	}
	c.trips[c.pongs%len(c.trips)] = measured
	c.pongs++
	c.shortestTrip.Store(slices.Min(c.trips[:min(c.pongs, len(c.trips))]))
	if c.pongs < firstPings {
		c.ping()
	}
}

func (c *Multiplexer) roundTrip() time.Duration {
	if shortest := c.shortestTrip.Load(); shortest > 0 {
		return time.Duration(shortest)
	}
	return firstRoundTrip
}

// remove drops a stream, and reports whether it was still known.
func (c *Multiplexer) remove(s *Stream) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams[s.id] != s {
		return false
	}
	delete(c.streams, s.id)
	if c.mine(s.id) {
		c.opened--
	} else {
		c.accepted--
	}
	return true
}

// mine is true if this side has opened the stream.
func (c *Multiplexer) mine(id uint32) bool { return id&1 == c.odd }

// reset abandons a stream and tells the peer.
func (c *Multiplexer) reset(s *Stream) { c.abort(s, net.ErrClosed) }

// abort abandons a stream with a reason for this side and tells the peer.
func (c *Multiplexer) abort(s *Stream, reason error) {
	if c.remove(s) {
		c.out.control(kindReset, s.id, nil)
	}
	s.fail(reason, true)
}
