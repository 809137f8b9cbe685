// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"
)

// Stream is one connection inside a session, with TCP's manners: half close, a
// reset that the peer can tell from an end, deadlines, and a Close that returns
// at once.
type Stream struct {
	inner   *yamux.Stream
	carrier *Carrier

	// readMu and writeMu each let one caller through at a time: long writes are split,
	// and the goroutine that waits for the peer after Close takes over the reading.
	readMu, writeMu sync.Mutex
	// ended is set once a read has met the peer's end.
	ended atomic.Bool

	// closeMu is held to set closed and to move a deadline, which nobody does any
	// more after closed is set.
	closeMu sync.Mutex
	closed  atomic.Bool

	resetOnce sync.Once
}

var _ net.Conn = (*Stream)(nil)

func (c *Carrier) newStream(inner *yamux.Stream) *Stream {
	return &Stream{inner: inner, carrier: c}
}

// Read reads what the peer wrote. io.EOF means that the peer closed its half, and
// nothing else does.
func (s *Stream) Read(p []byte) (int, error) {
	s.readMu.Lock()
	defer s.readMu.Unlock()
	if s.closed.Load() {
		return 0, net.ErrClosed
	}
	n, err := s.inner.Read(p)
	if err != nil {
		return n, s.readError(err)
	}
	return n, nil
}

// readError tells the end that the peer meant from one that it did not: yamux
// answers io.EOF for both.
func (s *Stream) readError(err error) error {
	if s.closed.Load() {
		return net.ErrClosed
	}
	if !errors.Is(err, io.EOF) {
		return s.translate(err)
	}
	if !s.ended.Load() && s.carrier.session.IsClosed() {
		return s.carrier.closedError(nil)
	}
	s.ended.Store(true)
	return io.EOF
}

// Write writes p in frames of at most 64 KiB, each as the peer's window allows.
// A write deadline acts while the write waits for the window; once a frame is
// handed to the connection it is written whole.
func (s *Stream) Write(p []byte) (int, error) {
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	if s.closed.Load() {
		return 0, net.ErrClosed
	}
	written := 0
	for written < len(p) {
		n, err := s.inner.Write(p[written:min(written+maxFrame, len(p))])
		written += n
		if err != nil {
			return written, s.writeError(err)
		}
	}
	return written, nil
}

func (s *Stream) writeError(err error) error {
	if s.closed.Load() {
		return net.ErrClosed
	}
	if errors.Is(err, yamux.ErrConnectionWriteTimeout) {
		// The frame may still be sent: what the peer has is not known any more.
		_ = s.Reset()
	}
	return s.translate(err)
}

func (s *Stream) translate(err error) error {
	switch {
	case errors.Is(err, yamux.ErrTimeout), errors.Is(err, yamux.ErrConnectionWriteTimeout):
		return os.ErrDeadlineExceeded
	case errors.Is(err, yamux.ErrConnectionReset):
		return ErrReset
	case s.carrier.session.IsClosed():
		return s.carrier.closedError(nil)
	case errors.Is(err, yamux.ErrStreamClosed):
		return net.ErrClosed
	}
	return err
}

// CloseWrite tells the peer that nothing more will be written; reading goes on.
func (s *Stream) CloseWrite() error {
	if s.closed.Load() {
		return net.ErrClosed
	}
	return s.inner.Close()
}

// Close ends both directions and wakes who waits in Read or Write. What was
// written still reaches the peer; a peer that goes on writing is reset. It
// returns at once.
func (s *Stream) Close() error { return s.finish(false) }

// Reset abandons the stream: the peer's reads and writes fail with [ErrReset].
// Use it instead of Close when what was written so far is not all there was.
func (s *Stream) Reset() error { return s.finish(true) }

func (s *Stream) finish(reset bool) error {
	if s.markClosed() {
		s.carrier.spawn(func() { s.leave(reset) })
	}
	return nil
}

// markClosed wakes a waiting Read and says whether it was the first to come here.
func (s *Stream) markClosed() bool {
	s.closeMu.Lock()
	defer s.closeMu.Unlock()
	if s.closed.Swap(true) {
		return false
	}
	_ = s.inner.SetReadDeadline(time.Unix(1, 0))
	return true
}

// leave takes the stream out of the session. A reset must go before yamux's end
// of stream, or the peer could take that for the truth.
func (s *Stream) leave(reset bool) {
	if reset {
		s.sendReset()
	}
	_ = s.inner.Close()
	// A Read that is under way has been woken, a later one sees closed: from here on
	// nobody else reads.
	s.readMu.Lock()
	ended := s.ended.Load()
	s.readMu.Unlock()
	if !ended {
		s.linger()
	}
}

// linger waits until the peer leaves the stream too, which frees it on this side,
// and throws away what still arrives. Data, or no answer in lingerTime, is
// answered by a reset, and so is a reset: yamux forgets a stream only when both
// have left.
func (s *Stream) linger() {
	var scratch [512]byte
	_ = s.inner.SetReadDeadline(time.Now().Add(lingerTime))
	for {
		_, err := s.inner.Read(scratch[:])
		switch {
		case err == nil:
			s.sendReset()
		case errors.Is(err, yamux.ErrTimeout):
			_ = s.inner.SetReadDeadline(time.Time{})
			s.sendReset()
		case errors.Is(err, yamux.ErrConnectionReset):
			s.sendReset()
			return
		default:
			return
		}
	}
}

// sendReset sends at most one reset per stream. An error is the session's, whose
// end every stream hears of.
func (s *Stream) sendReset() {
	s.resetOnce.Do(func() { _ = s.carrier.wire.reset(s.inner.StreamID()) })
}

// LocalAddr is the address of the session's connection on this side.
func (s *Stream) LocalAddr() net.Addr { return s.inner.LocalAddr() }

// RemoteAddr is the address of the session's connection on the other side.
func (s *Stream) RemoteAddr() net.Addr { return s.inner.RemoteAddr() }

// SetDeadline sets both deadlines.
func (s *Stream) SetDeadline(t time.Time) error {
	return s.setDeadline(s.inner.SetDeadline, t)
}

// SetReadDeadline wakes a waiting Read with os.ErrDeadlineExceeded at t.
func (s *Stream) SetReadDeadline(t time.Time) error {
	return s.setDeadline(s.inner.SetReadDeadline, t)
}

// SetWriteDeadline wakes a Write that waits for the peer's window at t.
func (s *Stream) SetWriteDeadline(t time.Time) error {
	return s.setDeadline(s.inner.SetWriteDeadline, t)
}

func (s *Stream) setDeadline(set func(time.Time) error, t time.Time) error {
	s.closeMu.Lock()
	defer s.closeMu.Unlock()
	if s.closed.Load() {
		return net.ErrClosed
	}
	return set(t)
}
