// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fleetgate.io/fleetgate/pkg/apiserver"
	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
)

// probed is the Liveness of members whose agents are probed by a function.
type probed struct {
	connected
	responds func(ctx context.Context, member string) bool
}

func (p probed) Responds(ctx context.Context, member string) bool { return p.responds(ctx, member) }

// The first request after an agent had stopped waited, with kubectl, until its tunnel was found
// dead after 19 to 33 s.
func TestProbe_AbortsRequestIfAgentDoesNotRespond(t *testing.T) {
	released := make(chan struct{})
	m := newMember(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-released:
			echo(w, r)
		case <-r.Context().Done():
		}
	}))
	var probes atomic.Int64
	g := newGateway(t, map[string]*member{"m1": m}, func(c *apiserver.Config) {
		c.Liveness = probed{responds: func(_ context.Context, name string) bool { probes.Add(1); return name != "m1" }}
	})
	const sentence = `member "m1" does not respond: its agent has a tunnel to this hub, but it did not respond to a probe`
	res := g.do(http.MethodGet, prefix+"m1/proxy/api", "jane", nil)
	wantCode(t, res, http.StatusBadGateway)
	if got := text(t, res); got != sentence+"\n" {
		t.Errorf("got %q", got)
	}
	res = g.do(http.MethodGet, prefix+"m1/proxy/api/v1/namespaces", "jane", nil)
	wantCode(t, res, http.StatusServiceUnavailable)
	if got := statusOf(t, res); got.Message != sentence || res.Header.Get("Retry-After") != "" {
		t.Errorf("got %q, to be retried after %q", got.Message, res.Header.Get("Retry-After"))
	}
	if probes.Load() != 2 {
		t.Errorf("the agent was probed %d times, want once for each request", probes.Load())
	}
	close(released)
	wantCode(t, g.do(http.MethodGet, prefix+"m1/proxy/api", "jane", nil), http.StatusOK)
}

func TestProbe_WaitsForSlowReplyWhileAgentResponds(t *testing.T) {
	var probing sync.WaitGroup
	probing.Add(1)
	m := newMember(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		probing.Wait() // It takes longer than the interval of probes.
		echo(w, r)
	}))
	g := newGateway(t, map[string]*member{"m1": m}, func(c *apiserver.Config) {
		var once sync.Once
		c.Liveness = probed{responds: func(context.Context, string) bool { once.Do(probing.Done); return true }}
	})
	wantCode(t, g.do(http.MethodGet, prefix+"m1/proxy/api/v1/namespaces", "jane", nil), http.StatusOK)
}

func TestProbe_DoesNotAbortReplyThatHasBegun(t *testing.T) {
	more := make(chan struct{})
	m := newMember(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "begun, ")
		_ = http.NewResponseController(w).Flush()
		<-more
		_, _ = io.WriteString(w, "and ended")
	}))
	g := newGateway(t, map[string]*member{"m1": m}, func(c *apiserver.Config) {
		c.Liveness = probed{responds: func(context.Context, string) bool { return false }}
	})
	time.AfterFunc(time.Second, func() { close(more) })
	res := g.do(http.MethodGet, prefix+"m1/proxy/api/v1/namespaces/a/pods/b/log", "jane", nil)
	wantCode(t, res, http.StatusOK)
	if got := text(t, res); !strings.HasSuffix(got, "begun, and ended") {
		t.Errorf("got %q", got)
	}
}

// deadConn is a connection in a tunnel that does not respond, of a member that has another tunnel.
type deadConn struct{ net.Conn }

func (deadConn) Responds(context.Context) bool { return false }

func TestProbe_ProbesTunnelOfTheConnection(t *testing.T) {
	m := newMember(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	g := newGateway(t, map[string]*member{"m1": m}, func(c *apiserver.Config) {
		c.Liveness = probed{responds: func(context.Context, string) bool { return true }}
		dialer := c.Dialer
		c.Dialer = clustergateway.DialerFunc(func(ctx context.Context, member, target string) (net.Conn, error) {
			conn, err := dialer.DialMember(ctx, member, target)
			return deadConn{conn}, err
		})
	})
	wantCode(t, g.do(http.MethodGet, prefix+"m1/proxy/api/v1/namespaces", "jane", nil), http.StatusServiceUnavailable)
}
