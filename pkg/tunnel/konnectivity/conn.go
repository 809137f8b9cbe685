// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"fleetgate.io/fleetgate/pkg/tunnel"
)

// conn is one proxied connection of a multiplexer. It behaves like a TCP connection as far as the peer
// supports that. Deadlines and Close always work. Half close, and a reset that differs from an end,
// work between two of our own ends.
type conn struct {
	multiplexer   *multiplexer
	id            int64
	local, remote net.Addr
	in            inbox
	// out is guarded by the multiplexer's outbox.
	out outgoing
	// owed is what was read and not yet given back as credit.
	owed atomic.Int64
	// over is true if no close has to be sent any more: the peer has closed, or was told.
	over atomic.Bool
	// peerClosed is true if the peer has closed.
	peerClosed atomic.Bool
	linger     atomic.Pointer[time.Timer]
	closing    sync.Once
	// onClose is called once when the connection is closed here.
	onClose func()

	// failing guards the following fields.
	failing sync.Mutex
	// failed is true once the peer has reset the connection, or its stream has ended. onFailure is
	// called then.
	failed    bool
	onFailure func()
}

var _ net.Conn = (*conn)(nil)

func newConn(l *multiplexer, id int64, local, remote net.Addr) *conn {
	c := &conn{multiplexer: l, id: id, local: local, remote: remote, in: inbox{ready: make(chan struct{}, 1), drained: make(chan struct{}, 1), unread: l.unread}, onClose: func() {}}
	c.out.room = make(chan struct{}, 1)
	c.out.window, c.out.packet = unlimited, upstreamPayload
	if l.extended {
		c.out.window, c.out.packet = window, maxPayload
	}
	return c
}

// Read reads what the peer sent. io.EOF means that the peer has ended its half, or closed the
// connection: upstream has one packet for both.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	return n, c.hasRead(n, err)
}

func (c *conn) hasRead(n int, err error) error {
	if n > 0 {
		c.multiplexer.giveBack(c, n)
	}
	if errors.Is(err, io.EOF) && c.peerClosed.Load() {
		// All data from before the peer's close has been read, and nothing can be written any more.
		c.multiplexer.out.fail(c, nil, errPeerClosed)
	}
	return err
}

// Write returns when p is queued for sending; the queue of a connection is short. Blocks of 32 KiB
// of several writers take turns.
func (c *conn) Write(p []byte) (int, error) {
	sent := 0
	for sent < len(p) {
		n, err := c.multiplexer.out.write(c, p[sent:])
		sent += n
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// Close sends the written data and then the close. It does not wait.
func (c *conn) Close() error {
	c.closing.Do(func() {
		c.multiplexer.out.finish(c, c.farewell(""), net.ErrClosed)
		c.leave()
	})
	return nil
}

// Reset abandons the connection: written data may be lost, and a peer that supports it sees a
// reset.
func (c *conn) Reset() error {
	c.closing.Do(func() {
		c.multiplexer.out.fail(c, c.farewell(resetReason), net.ErrClosed)
		c.leave()
	})
	return nil
}

// farewell is the packet that closes, unless the peer knows already.
func (c *conn) farewell(reason string) *packet {
	if c.over.Swap(true) {
		return nil
	}
	return c.multiplexer.closePacket(c.id, reason)
}

func (c *conn) leave() {
	c.multiplexer.forget(c)
	c.in.fail(net.ErrClosed)
	if timer := c.linger.Load(); timer != nil {
		timer.Stop()
	}
	c.onClose()
}

// CloseWrite ends this half. Upstream has no half close. To such a peer it closes the connection
// after the written data; what arrives until the peer has closed too can still be read.
func (c *conn) CloseWrite() error {
	if c.multiplexer.extended {
		c.multiplexer.out.finishHalf(c, &packet{kind: end, connID: c.id})
		return nil
	}
	c.multiplexer.out.finishHalf(c, c.farewell(""))
	if !c.multiplexer.gateway {
		// An agent that has closed gets no more packets of the connection.
		c.multiplexer.forget(c)
		c.in.finish(io.EOF)
	}
	return nil
}

// closedByPeer handles the peer's close. Data that it sent before can still be read.
func (c *conn) closedByPeer(reason string, response *packet) {
	c.over.Store(true)
	c.peerClosed.Store(true)
	c.multiplexer.forget(c)
	switch {
	case reason != "":
		c.fail(response, peerReset(reason))
	case c.multiplexer.gateway:
		c.in.finish(io.EOF)
		c.multiplexer.out.fail(c, response, errPeerClosed)
	default:
		// Data from before the close still has to reach the target. Until then, what the target
		// sends is discarded: an error would end the target's connection.
		c.in.finish(io.EOF)
		c.multiplexer.out.discard(c, response)
		c.linger.Store(time.AfterFunc(lingerTime, func() {
			c.fail(nil, errPeerClosed)
		}))
	}
}

// fail ends both directions now, and sends the packet if there is one.
func (c *conn) fail(final *packet, err error) {
	c.in.fail(err)
	c.multiplexer.out.fail(c, final, err)
	c.failing.Lock()
	defer c.failing.Unlock()
	c.failed = true
	if c.onFailure != nil {
		go c.onFailure()
		c.onFailure = nil
	}
}

// OnFailure calls f in its own goroutine when the peer resets the connection or its stream ends, at
// once if that has happened. It is OnFailure of a native stream in this protocol.
func (c *conn) OnFailure(f func()) {
	c.failing.Lock()
	defer c.failing.Unlock()
	if c.failed {
		go f()
		return
	}
	c.onFailure = f
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline sets both deadlines.
func (c *conn) SetDeadline(t time.Time) error {
	c.in.deadline.set(t)
	c.out.deadline.set(t)
	return nil
}

// SetReadDeadline limits present and later calls of Read.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.deadline.set(t)
	return nil
}

// SetWriteDeadline limits present and later calls of Write.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.out.deadline.set(t)
	return nil
}

var (
	errWriteClosed = fmt.Errorf("writing after the half close: %w", net.ErrClosed)
	errPeerClosed  = errors.New("the other side has closed the connection")
)

// resetReason is sent in a text field that upstream never uses.
const resetReason = "connection reset"

// peerReset is what both halves end with when the peer gave the connection up.
func peerReset(reason string) error { return fmt.Errorf("%w: %s", tunnel.ErrReset, reason) }

// addr is the address of one end of a connection: a name, since no network has it.
type addr string

func (addr) Network() string  { return "tunnel" }
func (a addr) String() string { return string(a) }
