// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"errors"
	"math"
	"net"
	"os"
	"sync"

	"google.golang.org/grpc/mem"
)

const (
	// block is how much of a long Write is copied at a time: a size of gRPC's pools.
	block = 32 << 10
	// maxPayload is the maximum of one DATA packet, so that other connections get their turn.
	maxPayload = 2 * block
	// upstreamPayload is the same for upstream's programs: a larger packet would make their gRPC
	// clear and fill a buffer of 1 MiB for each.
	upstreamPayload = block - 64
	// outLimit is what one connection may have queued for sending.
	outLimit = 4 * block
	// controlLimit limits the queued control packets, in bytes. If more are queued, the peer reads
	// nothing.
	controlLimit = 2 << 20
	// packetCost is the counted overhead of a packet.
	packetCost = 128
	// unlimited is the window for a peer that gives no credit.
	unlimited = math.MaxInt / 2
)

// outbox is what waits to be sent on one stream. One goroutine sends: first control packets, then
// one packet of each connection in turn.
type outbox struct {
	// wake has room for one: there is something to send.
	wake chan struct{}
	// overrun is closed when the peer reads nothing, and the stream has to end.
	overrun chan struct{}

	// mu guards the following fields and the outgoing half of every connection.
	mu      sync.Mutex
	control []packet
	// controlSize is the counted size of control.
	controlSize int
	ready       []*conn
	err         error
}

// outgoing is what one connection wants to send. The outbox's mu guards it.
type outgoing struct {
	deadline deadline
	// room has room for one: a writer may continue.
	room chan struct{}

	buffers mem.BufferSlice
	size    int
	// packet is the maximum payload of one packet.
	packet int
	// window is how much the peer still accepts.
	window int
	// final is sent after the buffers, and nothing after it.
	final *packet
	// discards is true if written data is discarded without an error.
	discards bool
	// listed is true if the connection is in the outbox's list.
	listed bool
	// err is what a writer gets.
	err error
}

// send queues a packet that goes before all data.
func (o *outbox) send(p packet) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sendLocked(p)
}

func (o *outbox) sendLocked(p packet) {
	if o.err != nil || o.controlSize > controlLimit {
		return
	}
	o.control = append(o.control, p)
	o.controlSize += costOf(p)
	if o.controlSize > controlLimit {
		close(o.overrun)
	}
	notify(o.wake)
}

func costOf(p packet) int { return packetCost + len(p.address) + len(p.reason) }

// close makes every later call do nothing, and drops what is queued for all.
func (o *outbox) close(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
	o.control = nil
	for _, c := range o.ready {
		c.out.buffers.Free()
		c.out.buffers, c.out.listed = nil, false
	}
	o.ready = nil
}

// next takes the next packet to send; ok is false if there is none.
func (o *outbox) next() (p packet, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.control) > 0 {
		p = o.control[0]
		o.control = o.control[1:]
		if o.controlSize <= controlLimit { // Otherwise the stream is about to end.
			o.controlSize -= costOf(p)
		}
		return p, true
	}
	for len(o.ready) > 0 {
		c := o.ready[0]
		o.ready[0] = nil
		o.ready = o.ready[1:]
		c.out.listed = false
		p, ok = c.out.take(c.id)
		if len(c.out.buffers) > 0 || c.out.final != nil {
			o.list(c)
		}
		if ok {
			return p, true
		}
	}
	o.ready = nil
	return packet{}, false
}

// list appends a connection to those that have something to send.
func (o *outbox) list(c *conn) {
	if c.out.listed || o.err != nil {
		return
	}
	c.out.listed = true
	o.ready = append(o.ready, c)
	notify(o.wake)
}

// take makes one packet of what is queued.
func (g *outgoing) take(id int64) (packet, bool) {
	if len(g.buffers) == 0 {
		if g.final == nil {
			return packet{}, false
		}
		p := *g.final
		g.final = nil
		return p, true
	}
	n, size := 0, 0
	for n < len(g.buffers) && (n == 0 || size+g.buffers[n].Len() <= g.packet) {
		size += g.buffers[n].Len()
		n++
	}
	p := packet{kind: data, connID: id, payload: g.buffers[:n:n]}
	g.buffers = g.buffers[n:]
	g.size -= size
	notify(g.room)
	return p, true
}

// drop removes what is queued.
func (g *outgoing) drop() {
	g.buffers.Free()
	g.buffers, g.size = nil, 0
}

// write queues one block of p for c and returns its length; it waits for room.
func (o *outbox) write(c *conn, p []byte) (n int, err error) {
	err = o.await(c, func(room int) int {
		n = min(len(p), block, room)
		c.out.buffers = append(c.out.buffers, mem.Copy(p[:n], buffers))
		return n
	}, func() { n = len(p) })
	return n, err
}

// await calls add once c may send. add queues up to room bytes and returns how many. If written
// data is discarded, it calls discard instead.
func (o *outbox) await(c *conn, add func(room int) int, discard func()) error {
	g := &c.out
	for {
		passed := g.deadline.done()
		if isClosed(passed) {
			return os.ErrDeadlineExceeded
		}
		if done, err := o.try(c, add, discard); done || err != nil {
			return err
		}
		select {
		case <-g.room:
		case <-passed:
		}
	}
}

func (o *outbox) try(c *conn, add func(room int) int, discard func()) (done bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	g := &c.out
	if g.err != nil {
		notify(g.room) // for a second writer
		return false, g.err
	}
	if g.discards {
		discard()
		return true, nil
	}
	room := min(g.window, outLimit-g.size)
	if room <= 0 {
		return false, nil
	}
	n := add(room)
	g.size += n
	g.window -= n
	o.list(c)
	if g.window > 0 && g.size < outLimit {
		notify(g.room)
	}
	return true, nil
}

// finish ends the sending half of c after what is queued: with the packet, if there is one; writers
// get err.
func (o *outbox) finish(c *conn, final *packet, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	g := &c.out
	g.err = err
	if final != nil {
		g.final = final
		o.list(c)
	}
	notify(g.room)
}

// finishHalf is finish for a connection that is still read; only once.
func (o *outbox) finishHalf(c *conn, final *packet) {
	o.mu.Lock()
	defer o.mu.Unlock()
	g := &c.out
	if g.err != nil || g.discards {
		return
	}
	g.err = errWriteClosed
	if final != nil {
		g.final = final
		o.list(c)
	}
	notify(g.room)
}

// discard makes writes on c succeed without effect, and sends the packet.
func (o *outbox) discard(c *conn, final *packet) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.out.drop()
	c.out.final = nil
	c.out.discards = true
	o.sendLocked(*final)
	notify(c.out.room)
}

// fail ends the sending half of c now; the packet, if there is one, goes before what other
// connections send.
func (o *outbox) fail(c *conn, final *packet, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.out.drop()
	c.out.final = nil
	if c.out.err == nil || !errors.Is(c.out.err, net.ErrClosed) {
		c.out.err = err
	}
	if final != nil {
		o.sendLocked(*final)
	}
	notify(c.out.room)
}

// grant adds to what the peer accepts on c. It returns false if the peer grants more than it ever
// received.
func (o *outbox) grant(c *conn, amount int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if amount <= 0 || amount > window || c.out.window > window-int(amount) {
		return false
	}
	c.out.window += int(amount)
	notify(c.out.room)
	return true
}
