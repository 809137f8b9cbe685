// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"fleetgate.io/fleetgate/pkg/apiserver"
)

// counting counts the connections that it accepts.
type counting struct {
	net.Listener
	accepted atomic.Int64
}

func (c *counting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.accepted.Add(1)
	}
	return conn, err
}

// The hub's API server keeps one connection of HTTP/2, which leads to one replica.
func TestServer_MakesClientsReconnectWhenThereAreMoreReplicas(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	counted := &counting{Listener: listener}
	var replicas atomic.Int64
	replicas.Store(1)
	g, m := oneMember(t, func(c *apiserver.Config) {
		c.Listener = counted
		c.Replicas = func() int { return int(replicas.Load()) }
	})
	release := make(chan struct{})
	m.serve(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begin")
		_ = http.NewResponseController(w).Flush()
		if r.URL.Query().Get("watch") != "" {
			<-release
		}
		_, _ = io.WriteString(w, "end")
	})
	get := func(query string) *http.Response {
		t.Helper()
		reply := g.do(http.MethodGet, prefix+"m1/proxy/api/v1/pods"+query, "jane", nil)
		wantCode(t, reply, http.StatusOK)
		if reply.ProtoMajor != 2 || reply.Header.Get("Connection") != "" {
			t.Fatalf("%s, connection %q", reply.Proto, reply.Header.Get("Connection"))
		}
		return reply
	}
	// gets sends requests, and returns how many connections they needed.
	gets := func(n int) int64 {
		t.Helper()
		before := counted.accepted.Load()
		for range n {
			if _, err := io.ReadAll(get("").Body); err != nil {
				t.Fatal(err)
			}
		}
		return counted.accepted.Load() - before
	}
	lasting := get("?watch=true")
	if n := gets(50); n != 0 {
		t.Errorf("%d new connections to a single replica, want none", n)
	}
	replicas.Store(3)
	if n := gets(50); n != 1 {
		t.Errorf("%d new connections after another replica has started, want one", n)
	}
	replicas.Store(2)
	if n := gets(50); n != 0 {
		t.Errorf("%d new connections after a replica has ended, want none", n)
	}
	replicas.Store(3)
	if n := gets(50); n != 1 {
		t.Errorf("%d new connections after it has started again, want one", n)
	}
	close(release)
	if got, err := io.ReadAll(lasting.Body); err != nil || string(got) != "beginend" {
		t.Errorf("a watch on the first connection ended with %q, %v", got, err)
	}
}
