// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
)

// The parts of yamux's frame header (its spec.md) that are read or written here.
const (
	headerSize = 12

	frameData         = 0
	frameWindowUpdate = 1
	framePing         = 2

	flagSYN = 1
	flagRST = 8
)

// pingsPerSecond is what a peer may ask before its session ends. Yamux answers
// each ping from a goroutine of its own, so without a limit a peer that asks and
// never reads would fill this process's memory.
const pingsPerSecond = 64

// wire is the connection as yamux sees it. It joins a frame's header and body
// into one write (one TLS record and one system call less per frame), lets a
// reset in between two frames, and ends the session when the peer is silent,
// takes nothing, or floods.
type wire struct {
	net.Conn
	// silence is how long nothing may arrive, stall how long one frame may take
	// to be written.
	silence, stall time.Duration

	// Read is called by one goroutine, yamux's receive loop, which owns these.
	armed time.Time
	in    frameReader

	// writeMu guards the way out: frame, the data frame being put together.
	writeMu sync.Mutex
	frame   []byte

	// causeMu guards cause, the first error that ended the connection.
	causeMu sync.Mutex
	cause   error
}

func newWire(conn net.Conn) *wire {
	return &wire{Conn: conn, silence: peerSilence, stall: writeStall}
}

// Read is the peer's sign of life: each call may wait for the time of silence.
func (w *wire) Read(p []byte) (int, error) {
	// Moving the deadline costs more than looking at the clock; a second of
	// precision is enough.
	if now := time.Now(); now.Sub(w.armed) > time.Second {
		w.armed = now
		if err := w.SetReadDeadline(now.Add(w.silence)); err != nil {
			return 0, w.failed(err)
		}
	}
	n, err := w.Conn.Read(p)
	if err == nil {
		err = w.in.pass(p[:n], time.Now)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%w for %s", ErrPeerSilent, w.silence)
	}
	if err != nil {
		return n, w.failed(err)
	}
	return n, nil
}

// Write takes yamux's pieces and sends whole frames: a data frame's header waits
// for its body.
func (w *wire) Write(p []byte) (int, error) {
	w.writeMu.Lock()
	defer w.writeMu.Unlock()
	if len(w.frame) == 0 && !isDataHeader(p) {
		return w.send(p)
	}
	w.frame = append(w.frame, p...)
	if len(w.frame) < headerSize+int(binary.BigEndian.Uint32(w.frame[8:headerSize])) {
		return len(p), nil
	}
	_, err := w.send(w.frame)
	w.frame = w.frame[:0]
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// reset tells the peer that this side has left the stream. It may come before a
// data frame that is being put together, never inside one that is on its way.
func (w *wire) reset(stream uint32) error {
	frame := make([]byte, headerSize)
	frame[1] = frameWindowUpdate
	binary.BigEndian.PutUint16(frame[2:], flagRST)
	binary.BigEndian.PutUint32(frame[4:], stream)
	w.writeMu.Lock()
	defer w.writeMu.Unlock()
	_, err := w.send(frame)
	return err
}

// send writes p within the time of a stall. The caller holds writeMu.
func (w *wire) send(p []byte) (int, error) {
	if err := w.SetWriteDeadline(time.Now().Add(w.stall)); err != nil {
		return 0, w.failed(err)
	}
	n, err := w.Conn.Write(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%w for %s", ErrPeerStalled, w.stall)
	}
	if err != nil {
		return n, w.failed(err)
	}
	return n, nil
}

// failed remembers the first error, which is the reason for all that follow. That
// this side has closed the connection is never the reason: something else made it.
func (w *wire) failed(err error) error {
	w.causeMu.Lock()
	defer w.causeMu.Unlock()
	if w.cause == nil && !isLocalClose(err) {
		w.cause = err
	}
	return err
}

// reason says why the connection ended, nil while it did not.
func (w *wire) reason() error {
	w.causeMu.Lock()
	defer w.causeMu.Unlock()
	if errors.Is(w.cause, io.EOF) {
		return errPeerClosed
	}
	return w.cause
}

// isLocalClose says that err only tells of a connection or session that this
// process has closed. (The peer's end of a net.Pipe looks like it to a writer; its
// reader learns the truth.)
func isLocalClose(err error) bool {
	return errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, yamux.ErrSessionShutdown)
}

func isDataHeader(p []byte) bool {
	return len(p) == headerSize && p[1] == frameData && binary.BigEndian.Uint32(p[8:]) > 0
}

// frameReader follows the frames in the bytes that arrive, to count pings.
type frameReader struct {
	header [headerSize]byte
	have   int    // bytes of header that have arrived
	body   uint32 // bytes of the current data frame still to come

	second time.Time
	pings  int
}

// pass looks at the next bytes of the connection and fails when the peer asks
// for more pings than pingsPerSecond.
func (f *frameReader) pass(p []byte, now func() time.Time) error {
	for len(p) > 0 {
		if f.body > 0 {
			n := min(uint32(len(p)), f.body)
			f.body -= n
			p = p[n:]
			continue
		}
		n := copy(f.header[f.have:], p)
		f.have += n
		p = p[n:]
		if f.have < headerSize {
			return nil
		}
		f.have = 0
		if err := f.frame(now); err != nil {
			return err
		}
	}
	return nil
}

func (f *frameReader) frame(now func() time.Time) error {
	switch f.header[1] {
	case frameData:
		f.body = binary.BigEndian.Uint32(f.header[8:])
	case framePing:
		if binary.BigEndian.Uint16(f.header[2:])&flagSYN == 0 {
			return nil
		}
		if t := now(); t.Sub(f.second) >= time.Second {
			f.second, f.pings = t, 0
		}
		if f.pings++; f.pings > pingsPerSecond {
			return errPingFlood
		}
	}
	return nil
}
