// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"encoding/binary"
	"sync"
)

const (
	// promptLimit is how many bytes of small frames may go before the others.
	promptLimit = 64 << 10
	// promptTop is how many bytes may wait in total: the protocol's own frames always get a place.
	// Only a peer that does not read can exceed it.
	promptTop = 8 << 20
	// promptKept is the size of the buffer for them that an idle session keeps.
	promptKept = 8 << 10
)

// writer writes frames. One goroutine at a time has the connection. It passes it on to the waiting
// streams in the order of their arrival, each for one frame. Prompt frames, which are small frames
// and the protocol's own, go before every frame.
type writer struct {
	wire *wire
	// fail ends the session.
	fail func(error)
	// kick gives the connection to the flushing goroutine.
	kick chan struct{}

	// mu guards the following fields.
	mu sync.Mutex
	// busy is set while a goroutine has the connection.
	busy bool
	// prompt are whole frames in order, spare is the buffer of those that were sent.
	prompt, spare []byte
	// queue are the frames that wait for their turn; some may have given up.
	queue []waiter
	err   error
}

// waiter is a frame of a stream that waits for its turn.
type waiter struct {
	stream *Stream
	ticket int
}

// control sends a frame of the protocol itself; it never waits.
func (w *writer) control(k kind, stream uint32, payload []byte) {
	w.mu.Lock()
	w.prompt = appendFrame(w.prompt, k, stream, payload)
	overrun := len(w.prompt) > promptTop
	w.startLocked()
	w.mu.Unlock()
	if overrun {
		w.fail(ErrPeerStalled)
	}
}

func (w *writer) credit(stream uint32, n int) {
	var payload [creditSize]byte
	binary.BigEndian.PutUint32(payload[:], uint32(n))
	w.control(kindCredit, stream, payload[:])
}

// startLocked makes the flushing goroutine send prompt frames, unless another goroutine has the
// connection and will do so.
func (w *writer) startLocked() {
	if !w.busy {
		w.busy = true
		w.kick <- struct{}{}
	}
}

// data sends a frame of a stream: at once if the connection is free, before the others if it is
// small, and otherwise when its turn comes.
func (w *writer) data(s *Stream, frame []byte) error {
	w.mu.Lock()
	switch {
	case w.err != nil:
		defer w.mu.Unlock()
		return w.err
	case !w.busy:
		w.busy = true
		w.mu.Unlock()
	case len(frame) <= headerSize+smallFrame && len(w.prompt)+len(frame) <= promptLimit:
		w.prompt = append(w.prompt, frame...)
		w.mu.Unlock()
		return nil
	default:
		w.queue = append(w.queue, waiter{s, s.queued()})
		w.mu.Unlock()
		if err := s.awaitTurn(); err != nil {
			return err
		}
	}
	err := w.write(frame)
	w.release()
	return err
}

// flush is called by the flushing goroutine once it has the connection.
func (w *writer) flush() {
	_ = w.write(nil)
	w.release()
}

// write sends prompt frames and then a frame. The caller has the connection.
func (w *writer) write(frame []byte) error {
	w.mu.Lock()
	prompt := w.prompt
	w.prompt, w.spare = w.spare[:0], nil
	w.mu.Unlock()
	err := w.wire.send(prompt, frame)
	w.mu.Lock()
	if cap(prompt) <= promptKept {
		w.spare = prompt[:0]
	}
	if w.err == nil {
		w.err = err
	}
	w.mu.Unlock()
	if err != nil {
		w.fail(err)
	}
	return err
}

// release passes the connection on.
func (w *writer) release() {
	for {
		w.mu.Lock()
		if len(w.queue) == 0 {
			w.busy = false
			w.queue = nil
			if len(w.prompt) > 0 && w.err == nil {
				w.startLocked()
			}
			w.mu.Unlock()
			return
		}
		next := w.queue[0]
		w.queue[0] = waiter{}
		w.queue = w.queue[1:]
		w.mu.Unlock()
		if next.stream.giveTurn(next.ticket) {
			return
		}
	}
}
