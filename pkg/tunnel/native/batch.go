// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"net"
	"sync"
)

// batch is a TCP connection below TLS. crypto/tls makes a system call for every record of 16 KiB.
// Here the records of a frame are written together. (Reading ahead in the same way costs more in
// copying than it saves in system calls; this was measured.)
type batch struct {
	net.Conn

	// mu guards the following fields: TLS may write an alert at any time.
	mu      sync.Mutex
	holding bool
	// buffered is what was written since hold.
	buffered *chunk
}

// Batch wraps a connection below TLS, so that New can combine its writes. The connection must not
// be read or written outside TLS.
func Batch(conn net.Conn) net.Conn { return &batch{Conn: conn} }

// NetConn returns the connection below. Use it only when TLS does no more.
func (b *batch) NetConn() net.Conn { return b.Conn }

// hold buffers writes until release.
func (b *batch) hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holding = true
}

// release writes the buffered data.
func (b *batch) release() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holding = false
	return b.flush()
}

func (b *batch) flush() error {
	if b.buffered == nil {
		return nil
	}
	_, err := b.Conn.Write(b.buffered.unread())
	b.buffered.free()
	b.buffered = nil
	return err
}

// Write buffers at most a chunk.
func (b *batch) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.buffered != nil && len(b.buffered.buffer)-b.buffered.end < len(p) {
		if err := b.flush(); err != nil {
			return 0, err
		}
	}
	if !b.holding || len(p) > largestChunk {
		return b.Conn.Write(p)
	}
	if b.buffered == nil {
		b.buffered = newChunk(largestChunk)
	}
	b.buffered.end += copy(b.buffered.buffer[b.buffered.end:], p)
	return len(p), nil
}
