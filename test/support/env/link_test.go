// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package env_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"fleetgate.io/fleetgate/test/support/env"
)

// echoServer answers every byte with itself.
func echoServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return listener.Addr().String()
}

func newLink(t *testing.T) *env.Link {
	t.Helper()
	link, err := env.NewLink(echoServer(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := link.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return link
}

func dial(t *testing.T, link *env.Link) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", link.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// roundTrip sends a word and reads it back.
func roundTrip(conn net.Conn, patience time.Duration) error {
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, "hello"); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, make([]byte, len("hello")))
	return err
}

const (
	patient   = 10 * time.Second
	impatient = 100 * time.Millisecond
)

func TestLinkCarriesBytesAndHalfCloses(t *testing.T) {
	conn := dial(t, newLink(t))
	if err := roundTrip(conn, patient); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(conn); err != nil || len(rest) != 0 {
		t.Errorf("after the half close: %q, %v", rest, err)
	}
}

func TestCutLinkResetsOldAndNewConnectionsUntilMended(t *testing.T) {
	link := newLink(t)
	old := dial(t, link)
	if err := roundTrip(old, patient); err != nil {
		t.Fatal(err)
	}
	link.Cut()
	if err := roundTrip(old, patient); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("old connection: got %v, want it to be reset", err)
	}
	// A new connection is reset while it is made or right after.
	if conn, err := net.Dial("tcp", link.Addr()); err == nil {
		defer conn.Close()
		if err := roundTrip(conn, patient); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("new connection: got %v, want it to be reset", err)
		}
	}
	link.Mend()
	if err := roundTrip(dial(t, link), patient); err != nil {
		t.Errorf("after Mend: %v", err)
	}
}

func TestStalledLinkKeepsConnectionsAndCarriesNothing(t *testing.T) {
	link := newLink(t)
	conn := dial(t, link)
	if err := roundTrip(conn, patient); err != nil {
		t.Fatal(err)
	}
	link.Stall()
	for name, conn := range map[string]net.Conn{"old": conn, "new": dial(t, link)} {
		if err := roundTrip(conn, impatient); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s connection: got %v, want a timeout", name, err)
		}
	}
	link.Mend()
	if err := conn.SetDeadline(time.Now().Add(patient)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, len("hello"))); err != nil {
		t.Errorf("after Mend the stalled answer: %v", err)
	}
}
