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

// Link is a wire on loopback between a client and a server, which a test can cut or
// stall. It lives in our process: a detached program must not depend on it.
type Link struct {
	target   string
	listener net.Listener
	done     chan struct{}
	work     sync.WaitGroup

	// mu guards what follows.
	mu sync.Mutex
	// open is closed while bytes may pass.
	open  chan struct{}
	cut   bool
	conns map[net.Conn]struct{}
}

// NewLink starts to carry connections to target, a host:port. Close it.
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

// Addr is the host:port to use instead of the target's.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// Config is a configuration that reaches its server over the link.
func (l *Link) Config(cfg *rest.Config) *rest.Config {
	over := rest.CopyConfig(cfg)
	over.Host = "https://" + l.Addr()
	return over
}

// Cut resets every connection, and new ones as soon as they are made.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for conn := range l.conns {
		reset(conn)
	}
}

// Stall keeps every connection but lets no byte pass, as a network that drops packets does.
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

// Close cuts everything for good and returns when nothing runs any more.
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

// track makes a connection one that Cut resets; it is false if the link is cut already.
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

// copy moves bytes one way until that way ends, and tells the other side so.
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
			// Half closed: the answer may still come.
			_ = to.(*net.TCPConn).CloseWrite()
			return
		}
	}
}

// pass waits while the link is stalled; it is false when the link is closed.
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

// reset ends a connection as a lost machine does, not as one that has finished.
func reset(conn net.Conn) {
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}
