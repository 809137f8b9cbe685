// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"
)

const (
	// peerSilence is how long nothing may arrive before the peer counts as dead: two pings and a
	// little. With pingInterval a dead peer is detected in 25 s.
	peerSilence = 25 * time.Second
	// writeStall is how long one frame (64 KiB at most) may take to be written.
	writeStall = 25 * time.Second
	// rearm is how often a deadline is moved. Moving it costs more than reading the clock, and a
	// second of precision is enough.
	rearm = time.Second
)

// wire is the connection below a session. It distinguishes a peer that sends or reads nothing from
// one that is slow.
type wire struct {
	net.Conn
	// batch is the connection below TLS if it can buffer writes. secured is TLS itself until its
	// handshake is done, because the handshake must not be buffered.
	batch   *batch
	secured *tls.Conn
	// silence is how long nothing may arrive, stall how long nothing may be written.
	silence, stall time.Duration
	// readArmed belongs to the goroutine that reads, writeArmed to the current writer.
	readArmed, writeArmed time.Time
	// reads counts reads, sent the bytes that were or are being sent, and acked the value of
	// sent when something last arrived.
	reads, sent, acked atomic.Int64
}

func newWire(conn net.Conn) *wire {
	w := &wire{Conn: conn, silence: peerSilence, stall: writeStall}
	if secured, ok := conn.(*tls.Conn); ok {
		w.batch, _ = secured.NetConn().(*batch)
		w.secured = secured
	}
	return w
}

// Read detects a peer that sends nothing: each call waits at most for the time of silence.
func (w *wire) Read(p []byte) (int, error) {
	if now := time.Now(); now.Sub(w.readArmed) > rearm {
		w.readArmed = now
		if err := w.SetReadDeadline(now.Add(w.silence)); err != nil {
			return 0, err
		}
	}
	n, err := w.Conn.Read(p)
	if n > 0 {
		w.reads.Add(1)
		w.acked.Store(w.sent.Load())
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%w for %s", ErrPeerSilent, w.silence)
	}
	return n, err
}

// send writes both pieces, in one system call where the connection can.
func (w *wire) send(pieces ...[]byte) error {
	if now := time.Now(); now.Sub(w.writeArmed) > rearm {
		w.writeArmed = now
		if err := w.SetWriteDeadline(now.Add(w.stall)); err != nil {
			return err
		}
	}
	for _, piece := range pieces {
		w.sent.Add(int64(len(piece)))
	}
	err := w.write(pieces)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%w for %s", ErrPeerStalled, w.stall)
	}
	return err
}

func (w *wire) write(pieces [][]byte) error {
	hold := w.batch != nil && w.handshakeDone()
	if hold {
		w.batch.hold()
	}
	for _, piece := range pieces {
		if len(piece) == 0 {
			continue
		}
		if _, err := w.Conn.Write(piece); err != nil {
			return err
		}
	}
	if hold {
		return w.batch.release()
	}
	return nil
}

func (w *wire) handshakeDone() bool {
	if w.secured != nil && w.secured.ConnectionState().HandshakeComplete {
		w.secured = nil
	}
	return w.secured == nil
}

// cut closes the connection at once. TLS would wait to send its closing alert to a peer that may
// read nothing.
func (w *wire) cut() {
	if secured, ok := w.Conn.(*tls.Conn); ok {
		_ = secured.NetConn().Close()
	}
	_ = w.Conn.Close()
}
