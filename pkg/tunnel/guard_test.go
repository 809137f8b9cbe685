// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"testing"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/tunneltest"
)

// acceptor is a listener whose connections, or failures, a test chooses.
type acceptor struct {
	results chan any
	closed  chan struct{}
}

func newAcceptor(results ...any) *acceptor {
	a := &acceptor{results: make(chan any, len(results)), closed: make(chan struct{})}
	for _, result := range results {
		a.results <- result
	}
	return a
}

func (a *acceptor) Accept() (net.Conn, error) {
	select {
	case result := <-a.results:
		if err, failed := result.(error); failed {
			return nil, err
		}
		return result.(net.Conn), nil
	case <-a.closed:
		return nil, net.ErrClosed
	}
}

func (a *acceptor) Close() error   { close(a.closed); return nil }
func (a *acceptor) Addr() net.Addr { return &net.TCPAddr{} }

// fromConn is a connection from an address.
type fromConn struct {
	net.Conn
	from   string
	closed bool
}

func from(address string) *fromConn { return &fromConn{from: address} }

func (c *fromConn) Close() error { c.closed = true; return nil }
func (c *fromConn) RemoteAddr() net.Addr {
	addr, err := net.ResolveTCPAddr("tcp", c.from)
	if err != nil {
		panic(err)
	}
	return addr
}

var noDescriptor = &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}

func TestGuard_RetriesWhileThereIsNoFileDescriptor(t *testing.T) {
	g := tunnel.NewGuard(newAcceptor(noDescriptor, noDescriptor, from("10.0.0.1:1000")), 1)
	conn, err := g.Accept()
	if err != nil || conn.RemoteAddr().String() != "10.0.0.1:1000" {
		t.Errorf("got %v, %v", conn, err)
	}
	_ = g.Close()
	if _, err := g.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed listener: %v", err)
	}
}

func TestGuard_LimitsConnectionsOfAddressWithoutSession(t *testing.T) {
	first, second, third := from("10.0.0.1:1000"), from("10.0.0.1:1001"), from("10.0.0.1:1002")
	a := newAcceptor(first, second, third, from("10.0.0.2:1000"), from("[fd00::1]:1"), from("[fd00::2]:1"), from("[fd00::3]:1"))
	g := tunnel.NewGuard(a, 2)
	accept := func(want string) net.Conn {
		t.Helper()
		conn, err := g.Accept()
		if err != nil || conn.RemoteAddr().String() != want {
			t.Fatalf("got %v, %v, want %s", conn, err, want)
		}
		return conn
	}
	one := accept("10.0.0.1:1000")
	accept("10.0.0.1:1001")
	accept("10.0.0.2:1000")
	if !third.closed {
		t.Error("the third connection of an address is open")
	}
	accept("[fd00::1]:1")
	accept("[fd00::2]:1")
	a.results <- from("10.0.0.3:1")
	accept("10.0.0.3:1") // and not a third one of the IPv6 network

	_ = one.Close()
	_ = one.Close()
	g.Admitted(second.RemoteAddr())
	a.results <- from("10.0.0.1:2000")
	a.results <- from("10.0.0.1:2001")
	a.results <- from("10.0.0.1:2002")
	a.results <- from("10.0.0.4:1")
	accept("10.0.0.1:2000")
	accept("10.0.0.1:2001")
	accept("10.0.0.4:1")
}

func TestPeers_ServeContinuesAfterTemporaryError(t *testing.T) {
	ca := newAuthority(t)
	one, _ := startReplica(t, "gateway-1", ca)
	a := newAcceptor(noDescriptor)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- one.peers.Serve(ctx, a) }()
	tunneltest.Eventually(t, "the error was met", func() bool { return len(a.results) == 0 })
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the port ended with %v", err)
	}
}
