// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
)

// eagerConn is a stream whose agent might not have responded yet. Writes are sent at once. The first
// Read consumes the response and fails with the agent's refusal if it is one.
type eagerConn struct {
	net.Conn
	// stopProbes is called once the agent has responded, unresponsive is set if it did not respond.
	stopProbes   context.CancelFunc
	unresponsive atomic.Bool

	// mu guards the following fields, and lets only one Read wait for the response at a time.
	mu sync.Mutex
	// response is the part that has arrived: a deadline may end a Read in the middle.
	response  []byte
	responded bool
	refusal   error
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
	if c.responded {
		return c.refusal
	}
	err := readResponse(&replay{eagerConn: c})
	if err != nil && c.unresponsive.Load() {
		err = ErrUnresponsive
	}
	if err != nil && !IsRefused(err) && !errors.Is(err, ErrUnresponsive) {
		return err
	}
	c.stopProbes()
	c.responded, c.response, c.refusal = true, nil, err
	return err
}

// replay repeats the part of the response that has arrived, and records what comes next.
type replay struct {
	*eagerConn
	at int
}

func (r *replay) Read(p []byte) (int, error) {
	if r.at < len(r.response) {
		n := copy(p, r.response[r.at:])
		r.at += n
		return n, nil
	}
	n, err := r.Conn.Read(p)
	r.response = append(r.response, p[:n]...)
	r.at += n
	return n, err
}

// Close ends both directions.
func (c *eagerConn) Close() error {
	c.stopProbes()
	return c.Conn.Close()
}

// CloseWrite half-closes the stream.
func (c *eagerConn) CloseWrite() error { return closeWrite(c.Conn) }

// Reset abandons the stream.
func (c *eagerConn) Reset() error {
	c.stopProbes()
	abandon(c.Conn)
	return nil
}

// OnFailure calls f when the stream fails.
func (c *eagerConn) OnFailure(f func()) { onFailure(c.Conn, f) }
