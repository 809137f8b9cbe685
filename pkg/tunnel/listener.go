// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"net"
	"sync"
)

// Listener turns streams into accepted connections, so that an http.Server can serve a target: run
// server.Serve(listener) and put listener.Target() into the table of targets.
type Listener struct {
	name    string
	streams chan net.Conn
	closed  chan struct{}
	closing sync.Once
}

var _ net.Listener = (*Listener)(nil)

// NewListener returns a listener; Addr returns the name.
func NewListener(name string) *Listener {
	return &Listener{name: name, streams: make(chan net.Conn), closed: make(chan struct{})}
}

// Target passes streams to Accept. It refuses a stream when the listener is closed, and when nobody
// accepts it before the gateway stops waiting.
func (l *Listener) Target() Target {
	return func(ctx context.Context) (Handler, error) {
		select {
		case <-l.closed:
			return nil, &RefusedError{Code: Unreachable, Message: l.name + " is closed"}
		default:
			return l.hand, nil
		}
	}
}

// hand passes one stream to Accept and waits until it is closed.
func (l *Listener) hand(ctx context.Context, stream net.Conn) error {
	conn := &watchedConn{Conn: stream, closed: make(chan struct{})}
	select {
	case l.streams <- conn:
	case <-l.closed:
		return net.ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-conn.closed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Accept waits for the next stream.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.streams:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close wakes Accept; accepted streams continue.
func (l *Listener) Close() error {
	l.closing.Do(func() { close(l.closed) })
	return nil
}

// Addr is the listener's name.
func (l *Listener) Addr() net.Addr { return addr(l.name) }

// watchedConn calls back when its user has closed it.
type watchedConn struct {
	net.Conn
	closed  chan struct{}
	closing sync.Once
}

func (c *watchedConn) Close() error {
	defer c.closing.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// CloseWrite half-closes the stream.
func (c *watchedConn) CloseWrite() error {
	if half, ok := c.Conn.(halfCloser); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// addr is the address of one end of a stream: a name, since streams have no network address.
type addr string

func (addr) Network() string  { return "tunnel" }
func (a addr) String() string { return string(a) }
