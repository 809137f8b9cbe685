// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
)

var (
	// ErrSessionClosed is returned by a stream or multiplexer whose session has ended for any reason;
	// the text says which.
	ErrSessionClosed = errors.New("tunnel session closed")
	// ErrReset is returned by a stream that the peer abandoned. It is also syscall.ECONNRESET, so
	// callers written for TCP recognize it.
	ErrReset = fmt.Errorf("stream reset by the peer: %w", syscall.ECONNRESET)
	// ErrTooManyStreams is returned by Open when the session has the maximum number of streams.
	ErrTooManyStreams = errors.New("too many streams in this session")
	// ErrDraining is returned by Open after the peer has asked for no more streams. Open streams
	// continue.
	ErrDraining = errors.New("the peer is about to close this session")
	// ErrOverBudget is returned by a stream that was reset because it held more unread bytes than
	// the budget had left.
	ErrOverBudget = errors.New("the stream held too much unread data while memory for streams was short")
	// ErrPeerSilent is the reason of a session whose peer sent nothing, not even a response to a
	// ping.
	ErrPeerSilent = errors.New("nothing arrived from the peer")
	// ErrPeerStalled is the reason of a session whose peer read nothing.
	ErrPeerStalled = errors.New("the peer took no data")

	errPeerClosed  = errors.New("the peer closed the connection")
	errLocalClosed = errors.New("closed by this side")
	errPingFlood   = fmt.Errorf("the peer sent more than %d pings in a second", pingsPerSecond)
)

// protocolError is a frame that no peer of this protocol sends.
type protocolError struct{ what string }

func (e *protocolError) Error() string { return "the peer broke the protocol: " + e.what }

// isLocalClose is true if err only means that this process has closed the connection. (A writer
// sees the same error when the peer closes its end of a net.Pipe; the reader gets the real reason.)
func isLocalClose(err error) bool {
	return errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe)
}
