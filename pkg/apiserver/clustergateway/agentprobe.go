// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// patience is how long a request waits for the first byte of a reply until the member's agent is
// probed. A live agent responds to a probe at once, however long the reply takes.
const patience = 500 * time.Millisecond

// probePause is the pause between two probes while the reply has not begun. A probe without a response takes
// 1.5 s, so a request ends about two seconds after its agent, or another gateway on the way, has stopped.
const probePause = 500 * time.Millisecond

// agentProbe aborts requests whose member's agent does not respond. The tunnel itself needs half a
// minute to notice that.
type agentProbe struct {
	member   string
	liveness Liveness
}

// errUnresponsive is the error of a request that was aborted because the agent did not respond.
var errUnresponsive = errors.New("the agent did not respond to a probe")

// roundTrip wraps a transport's RoundTrip. It fails with an error that Is errUnresponsive if the
// agent does not respond to a probe before the reply begins. A reply that has begun is not aborted.
func (p agentProbe) roundTrip(transport http.RoundTripper, out *http.Request) (*http.Response, error) {
	var decided atomic.Bool // Whichever comes first: the reply begins, or the request is aborted.
	var used usedConn
	ctx, giveUp := context.WithCancel(used.trace(out.Context()))
	done := make(chan struct{})
	defer close(done)
	probing := time.AfterFunc(patience, func() {
		for used.responds(ctx, p) {
			select {
			case <-time.After(probePause):
			case <-done:
				return
			}
		}
		if decided.CompareAndSwap(false, true) {
			giveUp()
		}
	})
	defer probing.Stop()
	res, err := transport.RoundTrip(out.WithContext(ctx))
	if !decided.CompareAndSwap(false, true) {
		if err == nil {
			_ = res.Body.Close()
		}
		return nil, fmt.Errorf("waiting for a reply: %w", errUnresponsive)
	}
	if err != nil {
		giveUp()
	}
	return res, err
}

// usedConn is the connection to the member that a request was sent on.
type usedConn struct{ conn atomic.Pointer[prober] }

// prober is a connection in a tunnel that can probe its own tunnel.
type prober interface {
	Responds(ctx context.Context) bool
}

func (u *usedConn) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		conn := got.Conn
		switch c := conn.(type) {
		case *tls.Conn:
			conn = c.NetConn()
		case *watchedConn:
			conn = c.Conn
		}
		if p, ok := conn.(prober); ok {
			u.conn.Store(&p)
		}
	}})
}

// responds probes the tunnel of the connection. That another tunnel of the member works does not help
// this request. Before there is a connection, it probes the member.
func (u *usedConn) responds(ctx context.Context, p agentProbe) bool {
	if conn := u.conn.Load(); conn != nil {
		return (*conn).Responds(ctx)
	}
	return p.liveness.Responds(ctx, p.member)
}
