// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"fleetgate.io/fleetgate/pkg/tunnel/native"
)

// session is one agent's connection as the gateway sees it.
type session struct {
	member  string
	carrier Carrier
	max     int64
	meter   *meter
	open    atomic.Int64
}

// watch waits until the session ends and says why. An agent opens no streams: one
// that does is not of this protocol.
func (s *session) watch(ctx context.Context) error {
	stream, err := s.carrier.Accept(ctx)
	if err != nil {
		return err
	}
	abandon(stream)
	return errForeignStream
}

// dial opens a stream to target and waits for the agent's answer, until ctx ends.
func (s *session) dial(ctx context.Context, target string) (net.Conn, error) {
	if !s.take() {
		return nil, s.busy()
	}
	stream, err := s.openTo(ctx, target)
	if err != nil {
		s.release()
		return nil, err
	}
	return &memberConn{Conn: stream, session: s, remote: addr(s.member + "/" + target)}, nil
}

func (s *session) openTo(ctx context.Context, target string) (net.Conn, error) {
	stream, err := s.carrier.Open(ctx, headerFor(ctx, target).encode())
	if errors.Is(err, native.ErrTooManyStreams) {
		return nil, s.busy()
	}
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = stream.SetDeadline(time.Unix(1, 0)) })
	err = readAnswer(stream)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		abandon(stream)
		return nil, err
	}
	return stream, nil
}

// headerFor tells the agent how long this side will wait.
func headerFor(ctx context.Context, target string) header {
	h := header{target: target}
	if deadline, ok := ctx.Deadline(); ok {
		// At least a millisecond: zero means that there is no limit.
		h.limit = max(time.Until(deadline), time.Millisecond)
	}
	return h
}

func (s *session) take() bool {
	if s.open.Add(1) > s.max {
		s.open.Add(-1)
		return false
	}
	s.meter.streams.Inc()
	return true
}

func (s *session) release() {
	s.open.Add(-1)
	s.meter.streams.Dec()
}

func (s *session) busy() error {
	return &RefusedError{Code: Busy, Message: fmt.Sprintf("all %d streams of the session are in use", s.max)}
}

// memberConn is a stream as DialMember gives it out: counted, and with the
// member's name for an address.
type memberConn struct {
	net.Conn
	session *session
	remote  addr
	closing sync.Once
}

func (c *memberConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.session.meter.received.Add(float64(n))
	return n, err
}

func (c *memberConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.session.meter.sent.Add(float64(n))
	return n, err
}

func (c *memberConn) Close() error {
	c.closing.Do(c.session.release)
	return c.Conn.Close()
}

// CloseWrite ends the direction towards the member; reading goes on.
func (c *memberConn) CloseWrite() error {
	if half, ok := c.Conn.(halfCloser); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Reset abandons the stream: the target on the member sees a reset, not an end.
func (c *memberConn) Reset() error {
	c.closing.Do(c.session.release)
	abandon(c.Conn)
	return nil
}

func (c *memberConn) LocalAddr() net.Addr  { return addr("gateway") }
func (c *memberConn) RemoteAddr() net.Addr { return c.remote }
