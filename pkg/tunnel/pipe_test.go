// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"syscall"
	"testing"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/tunneltest"
)

// startTCP serves each connection with serve and returns the address.
func startTCP(t testing.TB, serve func(*net.TCPConn)) string {
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
				serve(conn.(*net.TCPConn))
			}()
		}
	}()
	return listener.Addr().String()
}

func dialTCPTarget(t *testing.T, serve func(*net.TCPConn)) net.Conn {
	t.Helper()
	r := tunneltest.Connect(t, "one", map[string]tunnel.Target{tunnel.APIServer: tunnel.TCP(startTCP(t, serve))})
	conn, err := r.DialMember(t.Context(), "one", tunnel.APIServer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestTCPTarget_CopiesEverythingAndHalfCloses(t *testing.T) {
	conn := dialTCPTarget(t, func(c *net.TCPConn) {
		// It answers only after the request's end: the half close has to pass through.
		h := sha256.New()
		_, _ = io.Copy(h, c)
		_, _ = c.Write(h.Sum(nil))
	})
	sent := make([]byte, 20<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(sent)
	if _, err := conn.Write(sent); err != nil {
		t.Fatal(err)
	}
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	want := sha256.Sum256(sent)
	if got, err := io.ReadAll(conn); err != nil || !bytes.Equal(got, want[:]) {
		t.Errorf("got %x, %v; want %x", got, err, want)
	}
}

func TestTCPTarget_ResetIsNotAnEnd(t *testing.T) {
	conn := dialTCPTarget(t, func(c *net.TCPConn) {
		_, _ = io.ReadFull(c, make([]byte, 2))
		_, _ = c.Write([]byte("half an ans"))
		_, _ = io.ReadFull(c, make([]byte, 2))
		_ = c.SetLinger(0)
	})
	_, _ = conn.Write([]byte("go"))
	if _, err := io.ReadFull(conn, make([]byte, 11)); err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Write([]byte("on"))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, tunnel.ErrReset) {
		t.Errorf("got %v, want ErrReset", err)
	}
}

func TestTCPTarget_SeesReset(t *testing.T) {
	for name, leave := range map[string]func(net.Conn){
		"by close": func(c net.Conn) { _ = c.Close() },
		"by reset": func(c net.Conn) { _ = c.(interface{ Reset() error }).Reset() },
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			conn := dialTCPTarget(t, func(c *net.TCPConn) {
				_, err := io.Copy(c, endless{})
				ended <- err
			})
			if _, err := io.ReadFull(conn, make([]byte, 1<<20)); err != nil {
				t.Fatal(err)
			}
			leave(conn)
			if err := <-ended; !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
				t.Errorf("the target's writes ended with %v, want a reset", err)
			}
		})
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestTCPTarget_Unreachable(t *testing.T) {
	r := tunneltest.Connect(t, "one", map[string]tunnel.Target{tunnel.APIServer: tunnel.TCP("127.0.0.1:1")})
	_, err := r.DialMember(t.Context(), "one", tunnel.APIServer)
	var refused *tunnel.RefusedError
	if !errors.As(err, &refused) || refused.Code != tunnel.Unreachable {
		t.Errorf("got %v, want Unreachable", err)
	}
}

func TestTCPTarget_ClosedWhenAgentStops(t *testing.T) {
	ended := make(chan error, 1)
	address := startTCP(t, func(c *net.TCPConn) {
		_, err := io.Copy(io.Discard, c)
		ended <- err
	})
	r := tunneltest.NewRegistry(t, tunnel.Options{})
	leave := tunneltest.Join(t, r, "one", map[string]tunnel.Target{"a": tunnel.TCP(address)})
	conn, err := r.DialMember(t.Context(), "one", "a")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	leave()
	<-ended
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the gateway's user read %v, want the broken session", err)
	}
}

func TestDialTarget_WithoutHalfClose(t *testing.T) {
	near, far := net.Pipe()
	r := tunneltest.Connect(t, "one", map[string]tunnel.Target{
		"pipe": tunnel.Dial(func(context.Context) (net.Conn, error) { return near, nil }),
	})
	conn, err := r.DialMember(t.Context(), "one", "pipe")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = far.Write([]byte("bye")); _ = far.Close() }()
	if got, err := io.ReadAll(conn); err != nil || string(got) != "bye" {
		t.Errorf("read %q, %v", got, err)
	}
	_ = conn.Close()
}
