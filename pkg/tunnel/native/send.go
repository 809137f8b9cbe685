// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"errors"
	"io"
	"net"
	"os"
)

// smallFrame is the largest payload of a frame that overtakes waiting ones: a keystroke, an event,
// the message of a protocol.
const smallFrame = 2 << 10

// Write writes p in frames of at most 64 KiB, each when the peer's window allows it and when it is
// this stream's turn.
func (s *Stream) Write(p []byte) (int, error) {
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	if len(p) == 0 {
		return 0, s.writeState()
	}
	c := newChunk(min(len(p), maxPayload) + headerSize)
	defer c.free()
	written := 0
	for written < len(p) {
		n, err := s.reserve(len(p) - written)
		if err != nil {
			return written, err
		}
		copy(c.buffer[headerSize:], p[written:written+n])
		if err := s.send(c.buffer[:headerSize+n]); err != nil {
			return written, err
		}
		written += n
	}
	return written, nil
}

// ReadFrom writes what it reads from r, until r ends. It reads directly into the frames.
func (s *Stream) ReadFrom(r io.Reader) (int64, error) {
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	c := newChunk(smallestChunk)
	defer func() { c.free() }()
	var written int64
	for {
		n, err := r.Read(c.buffer[headerSize:])
		sent, failed := s.sendAll(c.buffer[:headerSize+n])
		written += int64(sent)
		switch {
		case failed != nil:
			return written, failed
		case err == io.EOF:
			return written, nil
		case err != nil:
			return written, err
		}
		c = fitting(c, n)
	}
}

// fitting is the buffer for the next read after one of n bytes. Most streams wait most of the time,
// and hold a small buffer. A read that fills it is followed by a large one.
func fitting(c *chunk, n int) *chunk {
	size := smallestChunk
	if headerSize+n >= smallestChunk {
		size = largestChunk
	}
	if len(c.buffer) == size {
		return c
	}
	c.free()
	return newChunk(size)
}

// sendAll sends the bytes after the room for a header, in as many frames as the window requires.
// The header of each next frame overwrites bytes that were sent.
func (s *Stream) sendAll(b []byte) (sent int, err error) {
	for len(b) > headerSize {
		n, err := s.reserve(len(b) - headerSize)
		if err != nil {
			return sent, err
		}
		if err := s.send(b[:headerSize+n]); err != nil {
			return sent, err
		}
		sent += n
		b = b[n:]
	}
	return sent, nil
}

// reserve waits until the peer accepts data and returns how much of want may be sent now: at least
// one byte. Call send afterwards.
func (s *Stream) reserve(want int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if err := s.unwritable(); err != nil {
			return 0, err
		}
		if s.credit > 0 {
			n := min(want, maxPayload, s.credit)
			s.credit -= n
			s.sending = true
			return n, nil
		}
		s.writable.Wait()
	}
}

// unwritable returns why nothing can be written. The caller holds mu.
func (s *Stream) unwritable() error {
	switch {
	case s.closed, s.endWanted:
		return net.ErrClosed
	case s.writeErr != nil:
		return s.writeErr
	case s.writeDeadline.expired:
		return os.ErrDeadlineExceeded
	}
	return nil
}

func (s *Stream) writeState() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unwritable()
}

// send sends one frame; b has room for the header before the payload.
func (s *Stream) send(b []byte) error {
	n := len(b) - headerSize
	frame{kind: kindData, stream: s.id, length: n}.put(b)
	err := s.mux.out.data(s, b)
	s.mu.Lock()
	s.sending = false
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.credit += n // it was not sent
	}
	ended := s.endWanted
	s.mu.Unlock()
	if ended {
		s.end(false)
	}
	return err
}

// queued returns a ticket for the frame in send, which then waits for its turn.
func (s *Stream) queued() (ticket int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tickets++
	s.waiting = true
	return s.tickets
}

// awaitTurn waits until the frame in send may be sent, and returns why if it must not.
func (s *Stream) awaitTurn() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.turn {
		if err := s.unwritable(); err != nil {
			s.waiting = false
			return err
		}
		s.writable.Wait()
	}
	s.turn, s.waiting = false, false
	return nil
}

// giveTurn lets the frame with this ticket be sent. It returns false if that frame no longer waits.
func (s *Stream) giveTurn(ticket int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.waiting || s.tickets != ticket {
		return false
	}
	s.turn = true
	s.writable.Broadcast()
	return true
}

// granted lets this side send n bytes more. It returns false if no valid peer grants that much.
func (s *Stream) granted(n uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n == 0 || int64(s.credit)+int64(n) > maxCredit {
		return false
	}
	s.credit += int(n)
	s.writable.Broadcast()
	return true
}

// maxCredit is the largest window of the protocol.
const maxCredit = 1 << 30

// CloseWrite signals that nothing more will be written; reading continues.
func (s *Stream) CloseWrite() error {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return net.ErrClosed
	}
	s.end(false)
	return nil
}

// end sends the end of this direction, once, after the frame in flight. A reset after it says that
// nobody reads either.
func (s *Stream) end(thenReset bool) {
	s.mu.Lock()
	s.endWanted = true
	s.resetWanted = s.resetWanted || thenReset
	s.writable.Broadcast()
	if s.sending || s.writeErr != nil {
		s.mu.Unlock()
		return
	}
	first, reset := !s.ended, s.resetWanted
	s.ended = true
	done := s.peerEnded
	s.mu.Unlock()
	if first {
		s.mux.out.control(kindEnd, s.id, nil)
	}
	if reset {
		s.mux.reset(s)
	} else if done {
		s.mux.remove(s)
	}
}
