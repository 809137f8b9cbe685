// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// patience is how long a request waits for the first byte of a reply until the member's agent is
// probed. A live agent responds to a probe at once, however long the reply takes.
const patience = 500 * time.Millisecond

// probePause is the pause between two probes while somebody waits for a reply, or for the rest of a short one. A probe without a response takes
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
// agent does not respond to a probe before the reply begins. So does the body of a reply while it is read,
// if x is a short request. A long-running one waits until its tunnel ends, as it would lose its place. x is
// nil for requests of the gateway itself.
func (p agentProbe) roundTrip(transport http.RoundTripper, out *http.Request, x *exchange) (*http.Response, error) {
	used := &usedConn{}
	ctx, cancel := context.WithCancelCause(used.trace(out.Context()))
	giveUp := func() { cancel(errUnresponsive) }
	stop := p.abort(ctx, used, giveUp)
	res, err := transport.RoundTrip(out.WithContext(ctx))
	if !stop() {
		if err == nil {
			_ = res.Body.Close()
		}
		return nil, fmt.Errorf("waiting for a reply: %w", errUnresponsive)
	}
	if err != nil {
		cancel(nil)
		return res, err
	}
	if x != nil && !x.request.LongRunning && res.StatusCode != http.StatusSwitchingProtocols {
		res.Body = &probedBody{ReadCloser: res.Body, exchange: x, begin: func() (stop func() bool) { return p.abort(ctx, used, giveUp) }}
	}
	return res, nil
}

// abort calls giveUp if the agent does not respond to a probe before stop is called. stop returns false if
// giveUp is called.
func (p agentProbe) abort(ctx context.Context, used *usedConn, giveUp func()) (stop func() bool) {
	var decided atomic.Bool // Whichever comes first: stop, or no response.
	done := make(chan struct{})
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
	return func() bool {
		probing.Stop()
		close(done)
		return decided.CompareAndSwap(false, true)
	}
}

// probedBody is the body of a reply whose reader does not wait for an unresponsive agent.
type probedBody struct {
	io.ReadCloser
	exchange *exchange
	// begin begins to wait for the agent.
	begin func() (stop func() bool)
}

func (b *probedBody) Read(p []byte) (int, error) {
	stop := b.begin()
	n, err := b.ReadCloser.Read(p)
	if !stop() {
		b.exchange.cut.Store(&errUnresponsive)
	}
	return n, err
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
