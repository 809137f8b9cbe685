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

// conn is one proxied connection of a carrier. It has the manners of a TCP connection
// as far as the peer can follow: deadlines and Close always, half close and a reset
// that can be told from an end between two of our own ends.
type conn struct {
	carrier       *carrier
	id            int64
	local, remote net.Addr
	in            inbox
	// out is guarded by the carrier's outbox.
	out outgoing
	// owed is what was read and not yet given back as credit.
	owed atomic.Int64
	// over says that nothing is left to be said about closing: the peer has closed, or
	// was told.
	over atomic.Bool
	// peerClosed says that it was the peer who has.
	peerClosed atomic.Bool
	linger     atomic.Pointer[time.Timer]
	closing    sync.Once
	// onClose is told once that the connection is given up here.
	onClose func()
}

var _ net.Conn = (*conn)(nil)

func newConn(l *carrier, id int64, local, remote net.Addr) *conn {
	c := &conn{carrier: l, id: id, local: local, remote: remote, in: newInbox(l.unread), onClose: func() {}}
	c.out.room = make(chan struct{}, 1)
	c.out.window, c.out.packet = unlimited, upstreamPayload
	if l.extended {
		c.out.window, c.out.packet = window, maxPayload
	}
	return c
}

// Read reads what the peer sent. io.EOF means that it has ended its half, or closed
// the connection: upstream has one word for both.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	return n, c.hasRead(n, err)
}

func (c *conn) hasRead(n int, err error) error {
	if n > 0 {
		c.carrier.giveBack(c, n)
	}
	if errors.Is(err, io.EOF) && c.peerClosed.Load() {
		// All that came before the peer closed has been taken: nothing to write for.
		c.carrier.out.fail(c, nil, errPeerClosed)
	}
	return err
}

// Write returns when p is queued for sending, of which a connection may have a
// little. Blocks of 32 KiB of several writers take turns.
func (c *conn) Write(p []byte) (int, error) {
	sent := 0
	for sent < len(p) {
		n, err := c.carrier.out.write(c, p[sent:])
		sent += n
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// Close sends what was written and then says that it is over. It does not wait.
func (c *conn) Close() error {
	c.closing.Do(func() {
		c.carrier.out.finish(c, c.farewell(""), net.ErrClosed)
		c.leave()
	})
	return nil
}

// Reset gives the connection up: what was written may be lost, and a peer that can
// be told sees a reset.
func (c *conn) Reset() error {
	c.closing.Do(func() {
		c.carrier.out.fail(c, c.farewell(resetReason), net.ErrClosed)
		c.leave()
	})
	return nil
}

// farewell is the packet that closes, unless the peer knows already.
func (c *conn) farewell(reason string) *packet {
	if c.over.Swap(true) {
		return nil
	}
	return c.carrier.closePacket(c.id, reason)
}

func (c *conn) leave() {
	c.carrier.forget(c)
	c.in.fail(net.ErrClosed)
	if timer := c.linger.Load(); timer != nil {
		timer.Stop()
	}
	c.onClose()
}

// CloseWrite ends this half. Upstream knows no half close: towards such a peer it
// closes the connection after what was written, and what arrives until the peer
// has closed too is still read.
func (c *conn) CloseWrite() error {
	if c.carrier.extended {
		c.carrier.out.finishHalf(c, &packet{kind: end, connID: c.id})
		return nil
	}
	c.carrier.out.finishHalf(c, c.farewell(""))
	if !c.carrier.gateway {
		// An agent that has closed hears no more of the connection.
		c.carrier.forget(c)
		c.in.finish(io.EOF)
	}
	return nil
}

// closedByPeer takes the peer's close: what it sent before is still to be read.
func (c *conn) closedByPeer(reason string, answer *packet) {
	c.over.Store(true)
	c.peerClosed.Store(true)
	c.carrier.forget(c)
	switch {
	case reason != "":
		c.in.fail(peerReset(reason))
		c.carrier.out.fail(c, answer, peerReset(reason))
	case c.carrier.gateway:
		c.in.finish(io.EOF)
		c.carrier.out.fail(c, answer, errPeerClosed)
	default:
		// What came before the close is still for the target. Until it has it, what
		// the target sends goes nowhere: an error would end the target's connection.
		c.in.finish(io.EOF)
		c.carrier.out.discard(c, answer)
		c.linger.Store(time.AfterFunc(lingerTime, func() {
			c.in.fail(errPeerClosed)
			c.carrier.out.fail(c, nil, errPeerClosed)
		}))
	}
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline sets both deadlines.
func (c *conn) SetDeadline(t time.Time) error {
	c.in.deadline.set(t)
	c.out.deadline.set(t)
	return nil
}

// SetReadDeadline bounds present and later calls of Read.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.deadline.set(t)
	return nil
}

// SetWriteDeadline bounds present and later calls of Write.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.out.deadline.set(t)
	return nil
}

var (
	errWriteClosed = fmt.Errorf("writing after the half close: %w", net.ErrClosed)
	errPeerClosed  = errors.New("the other side has closed the connection")
)

// resetReason goes over the wire where upstream has a text that it never uses.
const resetReason = "connection reset"

// peerReset is what both halves end with when the peer gave the connection up.
func peerReset(reason string) error { return fmt.Errorf("%w: %s", tunnel.ErrReset, reason) }

// addr is the address of one end of a connection: a name, since no network has it.
type addr string

func (addr) Network() string  { return "tunnel" }
func (a addr) String() string { return string(a) }
