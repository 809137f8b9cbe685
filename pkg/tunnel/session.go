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

// Session is one tunnel of a member as a [Registry] uses it, whatever its protocol.
// [Registry.Serve] uses package native; others are added with [Registry.ServeSession]. All methods
// may be called from any goroutine.
type Session interface {
	// Dial opens a connection to a target of the member: a name, or host:port where the member
	// allows that. It returns when the member has connected it. Otherwise it returns the cause of
	// ctx, a [RefusedError], or an error that wraps [ErrSessionClosed] or [ErrDraining], after
	// which another session is tried. The connection outlives ctx. It also has CloseWrite() error,
	// and Reset() error where the protocol can distinguish a reset from an end.
	Dial(ctx context.Context, target string) (net.Conn, error)
	// Drain asks the agent to reconnect, here or elsewhere, and to close this session once its
	// streams have ended. It does not wait.
	Drain()
	// Draining is closed when the agent wants no more streams in this session; nil if the protocol
	// cannot signal that.
	Draining() <-chan struct{}
	// Done is closed when the session has ended, Err says why from then on.
	Done() <-chan struct{}
	Err() error
	// Close ends the session and every connection in it.
	Close() error
}

// nativeSession implements SPEC.md's stream header on a multiplexer.
type nativeSession struct {
	Multiplexer
	// data offers data connections; nil if the session has none.
	data *dataPath
}

var _ Session = (*nativeSession)(nil)

// guard ends a session whose agent opens a stream, because the protocol does not allow that.
func (s *nativeSession) guard(ctx context.Context) error {
	stream, err := s.Accept(ctx)
	if err != nil {
		//lint:ignore nilerr The session has ended, which its owner notices.
		return nil
	}
	abandon(stream)
	_ = s.Close()
	return errForeignStream
}

// Dial opens a stream to target and waits for the agent's response.
func (s *nativeSession) Dial(ctx context.Context, target string) (net.Conn, error) {
	return s.dialHeader(ctx, headerFor(ctx, target), nil)
}

// onDataFunc returns the connection with the bytes of a stream that the agent has accepted on data.
type onDataFunc func(ctx context.Context, stream net.Conn) (net.Conn, error)

// dialHeader probes the peer while it waits for the response. It returns [ErrUnresponsive] if the peer does
// not respond, so that a frozen peer does not use up the time of the caller, who may have another
// session to try. onData returns the data connection of the stream, if the header offers one.
func (s *nativeSession) dialHeader(ctx context.Context, h header, onData onDataFunc) (net.Conn, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		if s.becomesUnresponsive(ctx) {
			cancel(ErrUnresponsive)
		}
	}()
	stream, err := s.open(ctx, h)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = stream.SetDeadline(time.Unix(1, 0)) })
	err = readResponse(stream)
	if !stop() {
		err = context.Cause(ctx)
	}
	conn := stream
	if onData != nil && isRefusedAs(err, codeOnData) {
		conn, err = onData(ctx, stream)
	}
	if err != nil {
		abandon(stream)
		return nil, err
	}
	return conn, nil
}

// becomesUnresponsive probes the peer until it does not respond, or ctx or the session has ended. One probe
// is not enough: data that was in flight counts as a response.
func (s *nativeSession) becomesUnresponsive(ctx context.Context) bool {
	for ctx.Err() == nil && !isDone(s.Multiplexer) {
		if !s.Responds(ctx) {
			return true
		}
	}
	return false
}

// dialEagerly opens a stream and lets the caller write at once. The first Read consumes the
// agent's response. Until then the agent is probed, and the stream ends with [ErrUnresponsive] if it does not
// respond.
func (s *nativeSession) dialEagerly(ctx context.Context, target string) (net.Conn, error) {
	stream, err := s.open(ctx, headerFor(ctx, target))
	if err != nil {
		return nil, err
	}
	// The stream outlives ctx.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c := &eagerConn{Conn: stream, stopProbes: cancel}
	go func() {
		if s.becomesUnresponsive(ctx) {
			c.unresponsive.Store(true)
			abandon(stream)
		}
	}()
	return c, nil
}

// dialAs opens a stream. Who could write eagerly waits for a data connection, to know where to write.
func (s *nativeSession) dialAs(ctx context.Context, target string, how dialing) (net.Conn, error) {
	h := headerFor(ctx, target)
	if how.nonce != "" && s.data != nil {
		h.nonce = how.nonce
		return s.dialHeader(ctx, h, func(_ context.Context, stream net.Conn) (net.Conn, error) {
			return forwardedData{stream}, nil
		})
	}
	if o := s.data.offer(target); o != nil {
		return s.dialData(ctx, h, s.data, o)
	}
	if how.eager {
		return s.dialEagerly(ctx, target)
	}
	return s.Dial(ctx, target)
}

func (s *nativeSession) open(ctx context.Context, h header) (net.Conn, error) {
	stream, err := s.Open(ctx, h.encode())
	if errors.Is(err, native.ErrTooManyStreams) {
		return nil, &RefusedError{Code: Busy, Message: err.Error()}
	}
	return stream, err
}

// headerFor says how long this side will wait.
func headerFor(ctx context.Context, target string) header {
	h := header{target: target}
	if deadline, ok := ctx.Deadline(); ok {
		// At least a millisecond: zero means that there is no limit.
		h.limit = max(time.Until(deadline), time.Millisecond)
	}
	return h
}

// session is a Session with the registry's data about it.
type session struct {
	Session
	member string
	max    int64
	meter  *meter
	// sessionChanges are the registry's.
	sessionChanges *sessionChanges
	open           atomic.Int64
	// retired is set when the agent wants no more streams, asked when it was asked to move to another
	// gateway. The registry's lock guards them.
	retired bool
	asked   time.Time
}

// dial counts and limits the session's streams.
func (s *session) dial(ctx context.Context, target string, how dialing) (net.Conn, error) {
	if !s.take() {
		return nil, &RefusedError{Code: Busy, Message: fmt.Sprintf("all %d streams of the session are in use", s.max)}
	}
	own, _ := s.Session.(*nativeSession)
	opened := time.Now()
	dial := s.Dial
	if own != nil {
		dial = func(ctx context.Context, target string) (net.Conn, error) { return own.dialAs(ctx, target, how) }
	}
	stream, err := dial(ctx, target)
	if err != nil {
		s.release()
		return nil, err
	}
	return &memberConn{
		Conn: stream, session: s, remote: addr(s.member + "/" + target),
		probe: probe{session: own, member: s.member, opened: opened, sessionChanges: s.sessionChanges},
	}, nil
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

// memberConn is a stream as dials return it: counted, and with the member's name as its address.
type memberConn struct {
	net.Conn
	probe
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

// CloseWrite ends the direction to the member; reading continues.
func (c *memberConn) CloseWrite() error { return closeWrite(c.Conn) }

// Reset abandons the stream: the target on the member sees a reset, not an end.
func (c *memberConn) Reset() error {
	c.closing.Do(c.session.release)
	abandon(c.Conn)
	return nil
}

// OnFailure calls f when the stream fails.
func (c *memberConn) OnFailure(f func()) { onFailure(c.Conn, f) }

func (c *memberConn) LocalAddr() net.Addr  { return addr("gateway") }
func (c *memberConn) RemoteAddr() net.Addr { return c.remote }
