// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunneltest

import (
	"net"
	"sync"
	"testing"
)

// Link is a TCP proxy as the network between an agent and a gateway. While it is cut, it reads
// nothing from either side and sends nothing, like a network that drops every packet. When it is
// healed, pending data arrives after all, as with TCP.
type Link struct {
	to       string
	listener net.Listener
	copying  sync.WaitGroup

	// mu guards the following fields.
	mu sync.Mutex
	// whole is closed while the link works; a cut replaces it.
	whole  chan struct{}
	closed bool
	conns  map[*net.TCPConn]struct{}
}

// NewLink leads to an address, host:port. The end of the test closes it.
func NewLink(t testing.TB, to string) *Link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listening for a link: %v", err)
	}
	l := &Link{to: to, listener: listener, whole: make(chan struct{}), conns: map[*net.TCPConn]struct{}{}}
	close(l.whole)
	l.copying.Go(l.accept)
	t.Cleanup(l.close)
	return l
}

// Address is where to connect instead of to.
func (l *Link) Address() string { return l.listener.Addr().String() }

// Cut silently stops all bytes in both directions, and new connections.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.whole = make(chan struct{})
}

// Heal lets bytes through again.
func (l *Link) Heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heal()
}

func (l *Link) heal() {
	select {
	case <-l.whole:
	default:
		close(l.whole)
	}
}

// Kill resets every connection, as the kernel does for a process that was killed with unread data.
// New ones get through.
func (l *Link) Kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn := range l.conns {
		_ = conn.SetLinger(0)
		_ = conn.Close()
	}
	clear(l.conns)
}

func (l *Link) close() {
	_ = l.listener.Close()
	l.mu.Lock()
	l.closed = true
	l.heal()
	l.mu.Unlock()
	l.Kill()
	l.copying.Wait()
}

func (l *Link) accept() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.copying.Go(func() { l.join(near.(*net.TCPConn)) })
	}
}

func (l *Link) join(near *net.TCPConn) {
	defer near.Close()
	l.await()
	conn, err := net.Dial("tcp", l.to)
	if err != nil {
		return
	}
	far := conn.(*net.TCPConn)
	defer far.Close()
	if !l.add(near, far) {
		return
	}
	var back sync.WaitGroup
	back.Go(func() { l.move(near, far) })
	l.move(far, near)
	back.Wait()
}

func (l *Link) add(conns ...*net.TCPConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range conns {
		l.conns[conn] = struct{}{}
	}
	return !l.closed
}

// await returns when the link works.
func (l *Link) await() {
	l.mu.Lock()
	whole := l.whole
	l.mu.Unlock()
	<-whole
}

func (l *Link) move(to, from *net.TCPConn) {
	defer func() { _ = to.CloseWrite() }()
	const size = 32 << 10
	buffer := make([]byte, size)
	for {
		n, err := from.Read(buffer)
		l.await()
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
