// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net"
	"net/http"
	"sync"
)

// connections are the open connections of the server. The hub's API server sends all its requests
// over one connection of HTTP/2, which leads to one replica. Connections that were opened when there
// were fewer replicas are sent GOAWAY: requests in flight continue, and the client connects through
// the Service again.
//
// The --goaway-chance of API servers would do so too, but in proportion to the requests. A client
// cannot repeat a request with a body that it sends while the GOAWAY is on its way, so a connection
// is replaced only when there is something to gain.
type connections struct {
	net.Listener
	// replicas is the number of replicas.
	replicas func() int

	// mu guards opened: by remote address, the least number of replicas since the connection was opened.
	mu     sync.Mutex
	opened map[string]int
}

func newConnections(l net.Listener, replicas func() int) *connections {
	if replicas == nil {
		replicas = func() int { return 1 }
	}
	return &connections{Listener: l, replicas: replicas, opened: map[string]int{}}
}

// Accept implements net.Listener.
func (c *connections) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	client, replicas := conn.RemoteAddr().String(), c.replicas()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opened[client] = replicas
	return &knownConnection{Conn: conn, close: sync.OnceFunc(func() { c.forget(client) })}, nil
}

func (c *connections) forget(client string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.opened, client)
}

// isDue is true if the client should connect again.
func (c *connections) isDue(client string) bool {
	replicas := c.replicas()
	c.mu.Lock()
	defer c.mu.Unlock()
	before, known := c.opened[client]
	if known && replicas < before {
		c.opened[client] = replicas
	}
	return known && replicas > before
}

// withGoaway sends GOAWAY on connections that are due. net/http does so for this header, which has no
// other effect in HTTP/2.
func (c *connections) withGoaway(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 && c.isDue(r.RemoteAddr) {
			w.Header().Set("Connection", "close")
		}
		inner.ServeHTTP(w, r)
	})
}

// knownConnection is forgotten when it is closed. Its address may be that of another one afterwards.
type knownConnection struct {
	net.Conn
	close func()
}

// Close implements net.Conn.
func (c *knownConnection) Close() error {
	c.close()
	return c.Conn.Close()
}
