// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"net"
	"sync"
)

// eagerConn is a stream whose agent might not have answered yet. Writes are sent at once. The first
// Read consumes the answer and fails with the agent's refusal if it is one.
type eagerConn struct {
	net.Conn

	// mu guards the following fields, and lets only one Read look for the answer at a time.
	mu sync.Mutex
	// answer is the part that has arrived: a deadline may end a Read in the middle.
	answer   []byte
	answered bool
	refusal  error
}

func (c *eagerConn) Read(p []byte) (int, error) {
	if err := c.await(); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

// await returns once the agent has accepted the stream.
func (c *eagerConn) await() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answered {
		return c.refusal
	}
	if err := readAnswer(&replay{eagerConn: c}); err != nil {
		if IsRefused(err) {
			c.answered, c.refusal = true, err
		}
		return err
	}
	c.answered, c.answer = true, nil
	return nil
}

// replay repeats the part of the answer that has arrived, and records what comes next.
type replay struct {
	*eagerConn
	at int
}

func (r *replay) Read(p []byte) (int, error) {
	if r.at < len(r.answer) {
		n := copy(p, r.answer[r.at:])
		r.at += n
		return n, nil
	}
	n, err := r.Conn.Read(p)
	r.answer = append(r.answer, p[:n]...)
	r.at += n
	return n, err
}

// CloseWrite half-closes the stream.
func (c *eagerConn) CloseWrite() error { return closeWrite(c.Conn) }

// Reset abandons the stream.
func (c *eagerConn) Reset() error {
	abandon(c.Conn)
	return nil
}

// OnFailure calls f when the stream fails.
func (c *eagerConn) OnFailure(f func()) { onFailure(c.Conn, f) }
