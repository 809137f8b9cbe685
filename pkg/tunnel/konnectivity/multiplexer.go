// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc/mem"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/budget"
)

const (
	// window is what one end may send on a connection before the other has read any of it, between
	// our own ends.
	window = 1 << 20
	// creditAt is how much is read before the peer gets credit for it.
	creditAt = window / 4
	// stallTime is how long an agent lets a target block a stream.
	stallTime = 5 * time.Second
	// lingerTime is how long an agent continues to write data to a target that arrived before the
	// other side closed.
	lingerTime = 10 * time.Second
)

// messageStream is the common interface of both ends of a gRPC stream.
type messageStream interface {
	Context() context.Context
	SendMsg(m any) error
	RecvMsg(m any) error
}

// multiplexer is either end of one stream of AgentService.Connect: connections by ID, one goroutine
// that sends and one that receives. Connections belong to their multiplexer; IDs of another one mean
// nothing here.
type multiplexer struct {
	stream messageStream
	// extended is true if the peer is one of our own and supports our packets.
	extended bool
	// gateway is true for the gateway's end, which asks for connections and has each close
	// confirmed. The other one is the agent's.
	gateway bool
	// queueLimit limits the unread data of a connection.
	queueLimit int
	// unread limits the unread data of the connections of all multiplexers.
	unread *budget.Budget
	meter  *meter

	out  outbox
	done chan struct{}
	// running counts the goroutines that send and receive.
	running sync.WaitGroup

	// mu guards the following fields.
	mu    sync.Mutex
	conns map[int64]*conn
	err   error
	// arrived wakes a stalled receiver: a dial is waiting for its answer.
	arrived chan struct{}
	pending int
}

func newMultiplexer(stream messageStream, extended, gateway bool, queueLimit int, unread *budget.Budget, m *meter) *multiplexer {
	if extended {
		// The window limits a peer that respects it. The limit for the others has to leave room for
		// the overhead of buffers.
		queueLimit = 2 * window
	}
	return &multiplexer{
		stream: stream, extended: extended, gateway: gateway, queueLimit: queueLimit, unread: unread, meter: m,
		out: outbox{wake: make(chan struct{}, 1), overrun: make(chan struct{})}, done: make(chan struct{}), conns: map[int64]*conn{}, arrived: make(chan struct{}, 1),
	}
}

// run sends and receives until the stream ends, stop is closed or handle refuses a packet, and
// returns why. All connections have failed then. Its goroutines end once the caller has ended the
// stream: see wait.
func (l *multiplexer) run(stop <-chan struct{}, handle func(packet) error) (err error) {
	failed := make(chan error, 2)
	l.running.Go(func() { failed <- l.receive(handle) })
	l.running.Go(func() { failed <- l.transmit() })
	select {
	case err = <-failed:
	case <-l.out.overrun:
		err = errTakesNothing
	case <-stop:
		err = errStopped
	}
	l.fail(err)
	return err
}

// wait returns when the goroutines of run have ended. A server's stream ends only when its handler
// has returned, so a handler must not call this.
func (l *multiplexer) wait() { l.running.Wait() }

var (
	errStopped      = errors.New("the stream was ended on this side")
	errTakesNothing = errors.New("the peer sends requests and reads no replies")
)

// transmit sends what is queued until the multiplexer fails.
func (l *multiplexer) transmit() error {
	for {
		p, ok := l.out.next()
		if !ok {
			select {
			case <-l.out.wake:
				continue
			case <-l.done:
				return errStopped
			}
		}
		l.meter.sent(&p)
		if err := l.stream.SendMsg(&p); err != nil {
			return fmt.Errorf("sending %s: %w", p.kind, err)
		}
	}
}

func (l *multiplexer) receive(handle func(packet) error) error {
	for {
		var p packet
		if err := l.stream.RecvMsg(&p); err != nil {
			if errors.Is(err, io.EOF) {
				return errors.New("the peer has ended the stream")
			}
			return fmt.Errorf("receiving: %w", err)
		}
		l.meter.received(&p)
		if err := handle(p); err != nil {
			return err
		}
	}
}

// fail ends the multiplexer for all connections.
func (l *multiplexer) fail(err error) {
	closed := fmt.Errorf("%w: %w", tunnel.ErrSessionClosed, err)
	l.out.close(closed)
	l.mu.Lock()
	l.err = closed
	conns := l.conns
	l.conns = nil
	l.mu.Unlock()
	close(l.done)
	for _, c := range conns {
		c.fail(nil, closed)
	}
}

// add registers a connection. It returns false if the ID is in use or the multiplexer has failed.
func (l *multiplexer) add(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, used := l.conns[c.id]; used || l.conns == nil || c.id == 0 {
		return false
	}
	l.conns[c.id] = c
	return true
}

func (l *multiplexer) forget(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conns[c.id] == c {
		delete(l.conns, c.id)
	}
}

func (l *multiplexer) conn(id int64) *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conns[id]
}

// open is how many connections are open.
func (l *multiplexer) open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

// deliver passes DATA to its connection. It never waits for a reader while other connections use
// the multiplexer.
func (l *multiplexer) deliver(p packet) {
	c := l.conn(p.connID)
	if c == nil {
		p.payload.Free() // the connection was closed in the meantime, or never existed
		l.meter.foreign(p.kind)
		return
	}
	if c.in.put(p.payload, l.queueLimit) || l.waitForReader(c, p.payload) {
		return
	}
	p.payload.Free()
	l.meter.overflowed()
	l.refuse(c, fmt.Errorf("%w: %d bytes wait unread on a stream without flow control, which is not for this connection alone", tunnel.ErrReset, l.queueLimit))
}

// waitForReader stops receiving until c is read, which blocks the whole multiplexer. Therefore it does
// so only while c is alone on it. An agent cannot see a dial that waits behind the data, so it
// waits at most stallTime for a target that reads nothing.
func (l *multiplexer) waitForReader(c *conn, payload mem.BufferSlice) bool {
	if l.extended {
		return false // the peer exceeded its window
	}
	defer l.meter.stalls()()
	var tooLong <-chan time.Time
	if !l.gateway {
		timer := time.NewTimer(stallTime)
		defer timer.Stop()
		tooLong = timer.C
	}
	for l.alone(c) {
		select {
		case <-tooLong:
			return false
		case <-l.arrived:
		case <-l.done:
		case <-l.stream.Context().Done():
			return false
		case <-c.in.drained:
		}
		if c.in.put(payload, l.queueLimit) {
			return true
		}
	}
	return false
}

// alone is true if nobody else has, or waits for, a connection.
func (l *multiplexer) alone(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pending == 0 && len(l.conns) == 1 && l.conns[c.id] == c
}

// expect counts dials that wait for their answer, so that a stalled receiver does not block them.
func (l *multiplexer) expect(change int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending += change
	notify(l.arrived)
}

// refuse ends a connection whose peer violates its limits.
func (l *multiplexer) refuse(c *conn, reason error) {
	l.forget(c)
	c.fail(l.closePacket(c.id, resetReason), reason)
}

// halfClosed handles the peer's half close.
func (l *multiplexer) halfClosed(id int64) {
	if c := l.conn(id); c != nil {
		c.in.finish(io.EOF)
	}
}

// credited lets a connection send more.
func (l *multiplexer) credited(p packet) {
	c := l.conn(p.connID)
	if c == nil {
		return
	}
	if !l.out.grant(c, p.amount) {
		l.refuse(c, fmt.Errorf("%w: the peer gave credit of %d bytes that it cannot have", tunnel.ErrReset, p.amount))
	}
}

// giveBack gives the peer credit for what was read.
func (l *multiplexer) giveBack(c *conn, n int) {
	if !l.extended {
		return
	}
	if owed := c.owed.Add(int64(n)); owed >= creditAt && c.owed.CompareAndSwap(owed, 0) {
		l.out.send(packet{kind: credit, connID: c.id, amount: owed})
	}
}

// closePacket is the packet with which this end closes a connection. Only our own peers understand
// a reason in a request; upstream's response has a field for it.
func (l *multiplexer) closePacket(id int64, reason string) *packet {
	if l.gateway {
		return &packet{kind: closeRequest, connID: id, reason: reason}
	}
	return &packet{kind: closeResponse, connID: id, reason: reason}
}
