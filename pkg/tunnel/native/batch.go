// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"net"
	"sync"
)

// batch is a TCP connection below TLS. crypto/tls makes a system call of every
// record, 16 KiB; here a frame's records leave together, and as many are read at
// once as have arrived.
type batch struct {
	net.Conn

	// mu guards the fields below it: TLS may write an alert at any time.
	mu      sync.Mutex
	holding bool
	// held is what was written since hold.
	held *chunk

	// Only who reads uses ahead, which was read before TLS asked for it.
	ahead *chunk
	// wide is set when the last read filled a small buffer: more may be waiting.
	wide bool
}

// Batch returns a connection for TLS to run on, of which New then makes the best.
// The connection must not be read or written beside TLS.
func Batch(conn net.Conn) net.Conn { return &batch{Conn: conn} }

// hold keeps back what is written until release.
func (b *batch) hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holding = true
}

// release writes what was held back.
func (b *batch) release() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holding = false
	return b.flush()
}

func (b *batch) flush() error {
	if b.held == nil {
		return nil
	}
	_, err := b.Conn.Write(b.held.unread())
	b.held.free()
	b.held = nil
	return err
}

// Write holds back at most a chunk.
func (b *batch) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held != nil && len(b.held.buffer)-b.held.end < len(p) {
		if err := b.flush(); err != nil {
			return 0, err
		}
	}
	if !b.holding || len(p) > largestChunk {
		return b.Conn.Write(p)
	}
	if b.held == nil {
		b.held = newChunk(largestChunk)
	}
	b.held.end += copy(b.held.buffer[b.held.end:], p)
	return len(p), nil
}

// Read reads ahead: little on a quiet connection, which holds no large buffer then,
// and much on a busy one.
func (b *batch) Read(p []byte) (int, error) {
	if b.ahead == nil {
		size := smallestChunk
		if b.wide {
			size = largestChunk
		}
		c := newChunk(size)
		n, err := b.Conn.Read(c.buffer)
		if err != nil {
			c.free()
			return 0, err
		}
		c.end = n
		b.ahead, b.wide = c, n >= smallestChunk
	}
	n := copy(p, b.ahead.unread())
	b.ahead.off += n
	if b.ahead.off == b.ahead.end {
		b.ahead.free()
		b.ahead = nil
	}
	return n, nil
}
