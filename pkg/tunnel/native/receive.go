// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"time"
)

const (
	// readBuffer is how much is read ahead of frames, to get many small ones at once. Larger
	// payloads are read directly into their chunk.
	readBuffer = 4 << 10
	// copiedData is the largest payload that is copied to the end of the unread data.
	copiedData = 2 << 10
	// pingsPerSecond is how many pings a peer may send before its session ends.
	pingsPerSecond = 64
)

// receiver reads frames from the connection. It waits only for the peer, never for a stream's
// reader or for the writer.
type receiver struct {
	*Multiplexer
	in    *bufio.Reader
	small [copiedData]byte

	second time.Time
	pings  int
}

func (c *Multiplexer) receive() {
	r := &receiver{Multiplexer: c, in: bufio.NewReaderSize(c.wire, readBuffer)}
	for {
		if err := r.next(); err != nil {
			c.fail(err)
			return
		}
	}
}

// next handles one frame.
func (r *receiver) next() error {
	var header [headerSize]byte
	if _, err := io.ReadFull(r.in, header[:]); err != nil {
		return err
	}
	f, err := parseFrame(header)
	if err != nil {
		return err
	}
	switch f.kind {
	case kindOpen:
		return r.open(f)
	case kindData:
		return r.data(f.stream, f.length)
	case kindEnd:
		r.ended(f.stream)
		return nil
	case kindReset:
		r.wasReset(f.stream)
		return nil
	}
	if f.kind >= firstOptional {
		return r.skip(f.length)
	}
	return r.message(f)
}

// message handles the frames whose payload is small.
func (r *receiver) message(f frame) error {
	if f.length > MaxInfo {
		return &protocolError{fmt.Sprintf("a message of %d bytes, %d are allowed", f.length, MaxInfo)}
	}
	payload := r.small[:]
	if f.length > len(payload) {
		payload = make([]byte, f.length)
	}
	payload = payload[:f.length]
	if _, err := io.ReadFull(r.in, payload); err != nil {
		return err
	}
	switch f.kind {
	case kindCredit:
		return r.credited(f.stream, binary.BigEndian.Uint32(payload))
	case kindPing:
		return r.pinged(payload)
	case kindPong:
		r.ponged(payload)
	case kindGoAway:
		r.goAway()
	case kindInfo:
		r.informed(payload)
	}
	return nil
}

func (r *receiver) stream(id uint32) *Stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.streams[id]
}

// open accepts a stream of the peer. A stream over the limit is reset, as if the user had done so.
func (r *receiver) open(f frame) error {
	if r.mine(f.stream) {
		return &protocolError{fmt.Sprintf("it opened stream %d, a number of this side", f.stream)}
	}
	s := newStream(r.Multiplexer, f.stream)
	r.mu.Lock()
	known := r.streams[f.stream] != nil
	room := r.accepted < r.max && len(r.accepts) < cap(r.accepts) && r.cause == nil
	if room && !known {
		r.streams[f.stream] = s
		r.accepted++
	}
	r.mu.Unlock()
	if known {
		return &protocolError{fmt.Sprintf("it opened stream %d twice", f.stream)}
	}
	if !room {
		r.out.control(kindReset, f.stream, nil)
		return r.skip(f.length)
	}
	if f.length > 0 {
		if err := r.data(f.stream, f.length); err != nil {
			return err
		}
	}
	// Only this goroutine sends, and there was room.
	r.accepts <- s
	return nil
}

// data delivers n bytes to a stream. Data for an unknown stream was in flight when this side reset
// it.
func (r *receiver) data(id uint32, n int) error {
	s := r.stream(id)
	if s == nil {
		return r.skip(n)
	}
	switch s.arriving(n) {
	case drop:
		return r.skip(n)
	case refuse:
		s.end(true)
		return r.skip(n)
	case forbidden:
		r.abort(s, &protocolError{"it sent more than it was granted, or after its end"})
		return r.skip(n)
	}
	within, err := r.deliver(s, n)
	if !within {
		r.abort(s, ErrOverBudget)
	}
	return err
}

func (r *receiver) deliver(s *Stream, n int) (within bool, err error) {
	if n <= copiedData {
		if _, err := io.ReadFull(r.in, r.small[:n]); err != nil {
			return true, err
		}
		return s.arrived(nil, n, r.small[:n]), nil
	}
	c := newChunk(n)
	if _, err := io.ReadFull(r.in, c.buffer[:n]); err != nil {
		c.free()
		return true, err
	}
	return s.arrived(c, n, nil), nil
}

func (r *receiver) skip(n int) error {
	_, err := r.in.Discard(n)
	return err
}

func (r *receiver) ended(id uint32) {
	if s := r.stream(id); s != nil && s.peerEnd() {
		r.remove(s)
	}
}

func (r *receiver) wasReset(id uint32) {
	if s := r.stream(id); s != nil {
		r.remove(s)
		s.fail(ErrReset, false)
	}
}

func (r *receiver) credited(id, n uint32) error {
	if s := r.stream(id); s != nil && !s.granted(n) {
		return &protocolError{fmt.Sprintf("it granted %d bytes", n)}
	}
	return nil
}

func (r *receiver) pinged(payload []byte) error {
	if now := time.Now(); now.Sub(r.second) >= time.Second {
		r.second, r.pings = now, 0
	}
	if r.pings++; r.pings > pingsPerSecond {
		return errPingFlood
	}
	r.out.control(kindPong, 0, payload)
	return nil
}

func (r *receiver) goAway() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.drains {
		r.drains = true
		close(r.draining)
	}
}

// informed keeps the latest message.
func (r *receiver) informed(info []byte) {
	latest := append([]byte(nil), info...)
	select {
	case <-r.infos:
	default:
	}
	// Only this goroutine sends, and there is room.
	r.infos <- latest
}
