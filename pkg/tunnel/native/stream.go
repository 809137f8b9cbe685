// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"fleetgate.io/fleetgate/pkg/tunnel/budget"
)

const (
	// firstWindow is what either side may send on a new stream before it is granted more: part of
	// the protocol.
	firstWindow = 256 << 10
	// maxWindow limits the window of a stream whose reader keeps up. 8 MiB allow 80 MB/s over a
	// link with a round trip of 100 ms.
	maxWindow = 8 << 20
	// lingerTime is how long a closed stream waits for the peer to close it too.
	lingerTime = 30 * time.Second
)

// Stream is one connection inside a session. It behaves like TCP: half close, a reset that the peer
// can distinguish from an end, deadlines, and a Close that returns at once. io.Copy reads and
// writes large amounts without copying them again.
type Stream struct {
	mux *Multiplexer
	id  uint32

	// readMu and writeMu let one caller each through at a time.
	readMu, writeMu sync.Mutex

	// mu guards the following fields. The writer's lock is never taken under it.
	mu sync.Mutex
	// readable and writable wake waiters in Read and Write.
	readable, writable sync.Cond

	in inbox
	// reading is set while the reader uses the unread bytes of in.head.
	reading bool
	// window is what the peer may still send, size its value when nothing is unread. taken is what
	// was read since the peer was last granted more, at since.
	window, size, taken int
	since               time.Time
	readDeadline        deadline
	// readErr ends reading once in is empty.
	readErr error

	// credit is what this side may still send.
	credit        int
	writeDeadline deadline
	// writeErr ends writing at once.
	writeErr error
	// sending is set while a frame is being sent. The end must wait for it, and a reset must not
	// overtake the end.
	sending, endWanted, resetWanted bool
	// waiting is set while a frame waits for its turn, turn when it has come; tickets numbers those
	// frames.
	waiting, turn bool
	tickets       int

	// closed: the user has closed the stream. ended and peerEnded: this side, and the peer, has
	// sent its end.
	closed, ended, peerEnded bool
	// linger ends the wait for the peer of a closed stream.
	linger *time.Timer
	// onFailure is called once, when the stream fails.
	onFailure func()
}

var (
	_ net.Conn      = (*Stream)(nil)
	_ io.WriterTo   = (*Stream)(nil)
	_ io.ReaderFrom = (*Stream)(nil)
)

func newStream(c *Multiplexer, id uint32) *Stream {
	s := &Stream{mux: c, id: id, window: firstWindow, size: firstWindow, credit: firstWindow, since: time.Now()}
	s.readable.L = &s.mu
	s.writable.L = &s.mu
	return s
}

// Read reads what the peer wrote. It returns io.EOF only if the peer closed its half.
func (s *Stream) Read(p []byte) (int, error) {
	s.readMu.Lock()
	defer s.readMu.Unlock()
	unread, err := s.await()
	if err != nil {
		return 0, err
	}
	n := copy(p, unread)
	s.took(n)
	return n, nil
}

// WriteTo writes to w what the peer sends, until the peer closes its half.
func (s *Stream) WriteTo(w io.Writer) (int64, error) {
	s.readMu.Lock()
	defer s.readMu.Unlock()
	var written int64
	for {
		unread, err := s.await()
		if errors.Is(err, io.EOF) {
			return written, nil
		}
		if err != nil {
			return written, err
		}
		n, err := w.Write(unread)
		s.took(n)
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
}

// await waits for unread bytes and returns them. Call took afterwards; they do not change until
// then.
func (s *Stream) await() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.closed:
			return nil, net.ErrClosed
		case s.readDeadline.expired:
			return nil, os.ErrDeadlineExceeded
		case s.in.size > 0:
			s.reading = true
			return s.in.head.unread(), nil
		case s.readErr != nil:
			return nil, s.readErr
		}
		s.readable.Wait()
	}
}

// took records that n of the bytes from await have been read.
func (s *Stream) took(n int) {
	s.mu.Lock()
	s.reading = false
	if n > 0 {
		s.in.drop(n)
		s.mux.budgets.give(n)
	}
	if s.closed {
		s.discard()
	}
	grant := s.grant(n)
	s.mu.Unlock()
	if grant > 0 {
		s.mux.out.credit(s.id, grant)
	}
}

// discard drops unread data and reports whether there was any. While the reader uses it, the reader
// drops it.
func (s *Stream) discard() bool {
	if s.reading {
		return s.in.size > 0
	}
	n := s.in.clear()
	s.mux.budgets.give(n)
	return n > 0
}

// grant counts n bytes as read and returns what the peer may send in return: nothing until half a
// window has accumulated. If a reader took that much within two round trips, the window limited it,
// and doubles.
func (s *Stream) grant(n int) int {
	if s.readErr != nil || s.closed {
		return 0
	}
	s.taken += n
	if s.taken < s.size/2 {
		return 0
	}
	granted, now := s.taken, time.Now()
	if s.size < maxWindow && now.Sub(s.since) < 2*s.mux.roundTrip() && s.mux.budgets.relaxed() {
		granted += s.size
		s.size *= 2
	}
	s.since, s.taken = now, 0
	s.window += granted
	return granted
}

// disposition says what to do with arrived data.
type disposition int

const (
	// keep: it waits for the reader.
	keep disposition = iota
	// drop: nobody waits for it.
	drop
	// refuse: the user has closed the stream, the peer must stop sending.
	refuse
	// forbidden: the peer must not send this.
	forbidden
)

// arriving decides before n bytes of data are read from the connection.
func (s *Stream) arriving(n int) disposition {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case n > s.window, s.peerEnded:
		return forbidden
	case s.closed:
		return refuse
	case s.readErr != nil:
		return drop
	}
	s.window -= n
	return keep
}

// arrived delivers data: either a chunk of n bytes, or few bytes to copy. It returns false when the
// stream holds too much for the budgets.
func (s *Stream) arrived(c *chunk, n int, few []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.readErr != nil {
		if c != nil {
			c.free()
		}
		return true
	}
	if c != nil {
		s.in.put(c, n)
	} else {
		n = len(few)
		s.in.add(few)
	}
	within := s.mux.budgets.take(n)
	s.readable.Signal()
	return within || s.in.size <= budget.Floor
}

// peerEnd handles the peer's end: no more data comes. done is true if the stream is finished.
func (s *Stream) peerEnd() (done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peerEnded = true
	s.stopLinger()
	if s.readErr == nil {
		s.readErr = io.EOF
	}
	s.readable.Broadcast()
	return s.ended
}

// fail ends both directions with err. Data that has arrived can still be read, unless now is set,
// and the peer's end stays an end.
func (s *Stream) fail(err error, now bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readErr == nil {
		s.readErr = err
	}
	if s.writeErr == nil {
		s.writeErr = err
	}
	if now {
		s.discard()
	}
	s.stopLinger()
	s.readable.Broadcast()
	s.writable.Broadcast()
	if s.onFailure != nil {
		go s.onFailure()
		s.onFailure = nil
	}
}

// OnFailure calls f in its own goroutine when the peer resets the stream or the session ends, at once
// if that has happened. A user that is blocked elsewhere learns so that the stream has failed. A
// later call replaces f.
func (s *Stream) OnFailure(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writeErr != nil {
		go f()
		return
	}
	s.onFailure = f
}

// Close ends both directions and wakes waiters in Read and Write. Written data still reaches the
// peer; a peer that keeps writing is reset. It returns at once.
func (s *Stream) Close() error {
	s.mu.Lock()
	if s.leave() {
		s.mu.Unlock()
		return nil
	}
	unread := s.discard()
	waits := !s.peerEnded && s.readErr == nil
	if waits && !unread {
		s.linger = time.AfterFunc(lingerTime, func() { s.mux.reset(s) })
	}
	s.mu.Unlock()
	// The peer must learn that its data was not read.
	s.end(waits && unread)
	return nil
}

// Reset abandons the stream: the peer's reads and writes fail with [ErrReset]. Use it instead of
// Close when the data written so far is incomplete.
func (s *Stream) Reset() error {
	s.mu.Lock()
	left := s.leave()
	s.discard()
	s.mu.Unlock()
	if !left {
		s.mux.reset(s)
	}
	return nil
}

// leave marks the stream as closed by its user, and reports whether it already was. The caller
// holds mu.
func (s *Stream) leave() (before bool) {
	before, s.closed = s.closed, true
	s.readDeadline.stop()
	s.writeDeadline.stop()
	s.readable.Broadcast()
	s.writable.Broadcast()
	return before
}

// stopLinger is called when nothing more can come from the peer.
func (s *Stream) stopLinger() {
	if s.linger != nil {
		s.linger.Stop()
	}
}

// LocalAddr is the address of the session's connection on this side.
func (s *Stream) LocalAddr() net.Addr { return s.mux.wire.LocalAddr() }

// RemoteAddr is the address of the session's connection on the other side.
func (s *Stream) RemoteAddr() net.Addr { return s.mux.wire.RemoteAddr() }

// SetDeadline sets both deadlines.
func (s *Stream) SetDeadline(t time.Time) error {
	return s.setDeadlines(t, true, true)
}

// SetReadDeadline wakes a waiting Read with os.ErrDeadlineExceeded at t.
func (s *Stream) SetReadDeadline(t time.Time) error {
	return s.setDeadlines(t, true, false)
}

// SetWriteDeadline wakes a Write that waits for the peer or for its turn at t. A frame that is
// being written to the connection is written completely.
func (s *Stream) SetWriteDeadline(t time.Time) error {
	return s.setDeadlines(t, false, true)
}

func (s *Stream) setDeadlines(t time.Time, read, write bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return net.ErrClosed
	}
	if read {
		s.readDeadline.move(t, &s.readable)
	}
	if write {
		s.writeDeadline.move(t, &s.writable)
	}
	return nil
}
