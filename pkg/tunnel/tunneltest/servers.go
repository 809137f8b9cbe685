// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunneltest

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Serve runs a TCP server on an address without a port, such as 127.0.0.1 or ::1, and returns its
// host:port. Each connection is closed when serve returns; the end of the test closes all and
// waits.
func Serve(t testing.TB, host string, serve func(*net.TCPConn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatalf("listening at %s: %v", host, err)
	}
	s := &server{listener: listener, serve: serve, conns: map[net.Conn]struct{}{}}
	s.running.Go(s.accept)
	t.Cleanup(s.close)
	return listener.Addr().String()
}

type server struct {
	listener net.Listener
	serve    func(*net.TCPConn)
	running  sync.WaitGroup

	// mu guards the following fields.
	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
}

func (s *server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		if !s.add(conn) {
			_ = conn.Close()
			return
		}
		s.running.Go(func() {
			defer s.remove(conn)
			s.serve(conn.(*net.TCPConn))
		})
	}
}

func (s *server) add(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[conn] = struct{}{}
	return !s.closed
}

func (s *server) remove(conn net.Conn) {
	_ = conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
}

func (s *server) close() {
	_ = s.listener.Close()
	s.mu.Lock()
	s.closed = true
	for conn := range s.conns {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
}

// Echo sends back what it gets, and ends when the other side does.
func Echo(conn *net.TCPConn) {
	// Not io.Copy on the connection itself: the kernel would move the bytes.
	_, _ = io.Copy(struct{ io.Writer }{conn}, struct{ io.Reader }{conn})
}
