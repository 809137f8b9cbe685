// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"net"

	"fleetgate.io/fleetgate/pkg/tunnel/budget"
	"fleetgate.io/fleetgate/pkg/tunnel/native"
)

// Multiplexer is one session between a gateway and an agent: it multiplexes streams over one connection.
// It guarantees:
//
//   - Each stream has its own flow control: a stream whose reader stops holds a
//     bounded amount of memory and never stops another stream.
//   - A stream is a net.Conn that also has CloseWrite() error (half close) and
//     Reset() error (abandon). Close returns at once, frees the stream on both
//     sides and wakes its waiters. A read ends with io.EOF only when the other side
//     has closed its half, never because the session broke.
//   - A peer that vanished is detected within 30 s, even when nobody sends anything.
//     The session ends then.
//   - When the session ends, Done is closed and every blocked method or stream
//     returns. Close is idempotent and waits for the multiplexer's goroutines.
type Multiplexer interface {
	// Open opens a stream that begins with the bytes of first. It does not wait for the peer. If
	// the session has no room for one more stream it fails at once.
	Open(ctx context.Context, first []byte) (net.Conn, error)
	// Accept waits for a stream that the peer opens.
	Accept(ctx context.Context) (net.Conn, error)
	// Drain asks the peer to open no more streams. Open streams continue.
	Drain()
	// Draining is closed when the peer has sent Drain.
	Draining() <-chan struct{}
	// SendInfo sends the peer a message about the session. Infos receives the peer's latest unread
	// message.
	SendInfo(info []byte)
	Infos() <-chan []byte
	// Responds probes the peer and reports whether it responded. If it did not, Unresponsive is true until
	// anything arrives.
	Responds(ctx context.Context) bool
	Unresponsive() bool
	// Streams is the number of open streams.
	Streams() int
	// Close ends the session and every stream in it.
	Close() error
	// Done is closed when the session has ended, Err says why from then on.
	Done() <-chan struct{}
	Err() error
}

var _ Multiplexer = (*native.Multiplexer)(nil)

// multiplexerFunc starts a multiplexer on a connection, which it then owns.
type multiplexerFunc func(ctx context.Context, conn net.Conn) (Multiplexer, error)

func nativeMultiplexer(side native.Side, maxStreams int, unread *budget.Budget) multiplexerFunc {
	return func(_ context.Context, conn net.Conn) (Multiplexer, error) {
		// The multiplexer also counts streams that only one side has closed: leave room for them.
		return native.New(conn, side, native.Options{MaxStreams: 2 * maxStreams, Budget: unread}), nil
	}
}

// halfCloser is a connection that can end one direction: streams, TCP and TLS.
type halfCloser interface{ CloseWrite() error }

func closeWrite(conn net.Conn) error {
	if half, ok := conn.(halfCloser); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// abandon closes conn so that the other side cannot take it for an orderly end.
func abandon(conn net.Conn) {
	switch c := conn.(type) {
	case interface{ Reset() error }:
		_ = c.Reset()
	case *net.TCPConn:
		_ = c.SetLinger(0)
		_ = c.Close()
	default:
		_ = conn.Close()
	}
}
