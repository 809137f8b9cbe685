// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"errors"
	"fmt"
	"net"
	"sync"

	"k8s.io/client-go/rest"
)

// Link is a connection on loopback between a client and a server that a test can cut or stall. It
// lives in the test's process, so a detached program must not use it.
type Link struct {
	target   string
	listener net.Listener
	done     chan struct{}
	work     sync.WaitGroup

	// mu guards the fields below.
	mu sync.Mutex
	// open is closed while bytes can pass.
	open  chan struct{}
	cut   bool
	conns map[net.Conn]struct{}
}

// NewLink forwards connections to target, a host:port, until Close.
func NewLink(target string) (*Link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("laying a link to %s: %w", target, err)
	}
	l := &Link{
		target: target, listener: listener, done: make(chan struct{}),
		open: make(chan struct{}), conns: map[net.Conn]struct{}{},
	}
	close(l.open)
	l.work.Go(l.accept)
	return l, nil
}

// Addr is the host:port to use in place of the target's.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// Config returns a configuration that reaches its server over the link.
func (l *Link) Config(cfg *rest.Config) *rest.Config {
	over := rest.CopyConfig(cfg)
	over.Host = "https://" + l.Addr()
	return over
}

// Cut resets every connection, and new ones as soon as they are open.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for conn := range l.conns {
		reset(conn)
	}
}

// Stall keeps every connection open but passes no bytes, like a network that drops packets.
func (l *Link) Stall() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.open:
		l.open = make(chan struct{})
	default:
	}
}

// Mend ends Cut and Stall.
func (l *Link) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = false
	select {
	case <-l.open:
	default:
		close(l.open)
	}
}

// Close cuts everything permanently and waits for all goroutines.
func (l *Link) Close() error {
	l.Cut()
	select {
	case <-l.done:
		return nil
	default:
	}
	close(l.done)
	err := l.listener.Close()
	l.work.Wait()
	return err
}

func (l *Link) accept() {
	for {
		conn, err := l.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil && l.track(conn) {
			l.work.Go(func() { l.carry(conn) })
		}
	}
}

// track registers a connection for Cut; it returns false if the link is cut.
func (l *Link) track(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		reset(conn)
		return false
	}
	l.conns[conn] = struct{}{}
	return true
}

func (l *Link) drop(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, conn)
	_ = conn.Close()
}

func (l *Link) carry(client net.Conn) {
	defer l.drop(client)
	if !l.pass() {
		return
	}
	server, err := net.Dial("tcp", l.target)
	if err != nil {
		reset(client)
		return
	}
	if !l.track(server) {
		return
	}
	defer l.drop(server)
	var both sync.WaitGroup
	both.Go(func() { l.copy(server, client) })
	both.Go(func() { l.copy(client, server) })
	both.Wait()
}

// copy copies bytes in one direction until its end, and half-closes the other side.
func (l *Link) copy(to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if !l.pass() {
			return
		}
		if _, failed := to.Write(buf[:n]); failed != nil {
			reset(from)
			return
		}
		if err != nil {
			// It is half closed: the response can still come.
			_ = to.(*net.TCPConn).CloseWrite()
			return
		}
	}
}

// pass waits while the link is stalled; it returns false when the link is closed.
func (l *Link) pass() bool {
	l.mu.Lock()
	open := l.open
	l.mu.Unlock()
	select {
	case <-open:
		return true
	case <-l.done:
		return false
	}
}

// reset ends a connection with a TCP reset, like a lost machine.
func reset(conn net.Conn) {
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}
