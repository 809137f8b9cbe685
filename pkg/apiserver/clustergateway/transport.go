// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// Targets of a dial into a member, as its agent knows them.
const (
	targetAPIServer = "apiserver"
	targetAgent     = "agent"
)

// MemberServerName is the name that the certificate of every Kubernetes API
// server is valid for.
const MemberServerName = "kubernetes.default.svc"

const (
	dialTimeout         = 10 * time.Second
	handshakeTimeout    = 10 * time.Second
	idleTimeout         = 5 * time.Minute
	pingAfter           = 15 * time.Second
	pingTimeout         = 15 * time.Second
	upgradeReplyTimeout = time.Minute
	maxReplyHeader      = 1 << 20
	// narrowWindow is how much of a reply a member may send that nobody has read yet,
	// where many members are asked the same; the least that net/http knows. Others get
	// what it gives by itself, 4 MiB.
	narrowWindow = 64 << 10
)

// Dialer opens streams into members. If no agent of the member is connected it
// fails at once, with an error that Is Config.NotConnected.
type Dialer interface {
	DialMember(ctx context.Context, member, target string) (net.Conn, error)
}

// DialerFunc is a function that dials.
type DialerFunc func(ctx context.Context, member, target string) (net.Conn, error)

// DialMember calls f.
func (f DialerFunc) DialMember(ctx context.Context, member, target string) (net.Conn, error) {
	return f(ctx, member, target)
}

// Credential is what the gateway proves itself with on a member, and what the
// member proves itself with to the gateway.
type Credential struct {
	// Token is the bearer token of the gateway's account on the member.
	Token string
	// CA is the bundle, in PEM, that the certificate of the member's API server
	// is verified against.
	CA []byte
}

// Credentials gives the current credential of a member, from memory: it is
// asked once per request.
type Credentials interface {
	Credential(member string) (Credential, error)
}

// CredentialsFunc is a function that gives credentials.
type CredentialsFunc func(member string) (Credential, error)

// Credential calls f.
func (f CredentialsFunc) Credential(member string) (Credential, error) { return f(member) }

// route is all that the gateway holds for one member: its connections, what its agent
// has granted, and what its API server said of those whose requests last.
type route struct {
	member      string
	credentials Credentials
	dialer      Dialer
	serverName  string
	grants      *grants
	actions     *actions
	vigil       vigil
	// departed is Config.Departed.
	departed func(member string) time.Time

	current atomic.Pointer[pool]
	// mu makes sure that only one new pool is made.
	mu sync.Mutex
}

// pool is the connections verified against one CA. Requests of all callers
// share them: who is calling, and the gateway's token, are in each request.
type pool struct {
	ca   []byte
	made time.Time
	// streams speaks HTTP/2 where the member does.
	streams *http.Transport
	// narrow is the same with narrowWindow.
	narrow *http.Transport
	// upgrades speaks HTTP/1.1 only, since HTTP/2 cannot switch protocols.
	upgrades *http.Transport
}

// poolFor makes another pool for another CA, and after the member has lost a way through a
// tunnel: what was dialled before may lead through one that is about to end, and take
// requests with it. Those under way go on where they are.
func (l *route) poolFor(ca []byte) (*pool, error) {
	departed := l.departed(l.member)
	fits := func(p *pool) bool { return p != nil && string(p.ca) == string(ca) && !departed.After(p.made) }
	if p := l.current.Load(); fits(p) {
		return p, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.current.Load()
	if fits(old) {
		return old, nil
	}
	p, err := l.newPool(ca)
	if err != nil {
		return nil, err
	}
	l.current.Store(p)
	if old != nil {
		old.closeIdle()
	}
	return p, nil
}

func (l *route) newPool(ca []byte) (*pool, error) {
	roots, err := untrusted.Certificates(ca)
	if err != nil {
		return nil, fmt.Errorf("reading the CA in the credential of member %q: %w", l.member, err)
	}
	p := &pool{ca: ca, made: time.Now(), streams: l.newTransport(roots), narrow: l.newTransport(roots), upgrades: l.newTransport(roots)}
	for _, t := range []*http.Transport{p.streams, p.narrow} {
		t.Protocols = new(http.Protocols)
		t.Protocols.SetHTTP1(true)
		t.Protocols.SetHTTP2(true)
		t.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout}
	}
	p.narrow.HTTP2.MaxReceiveBufferPerStream = narrowWindow
	p.upgrades.Protocols = new(http.Protocols)
	p.upgrades.Protocols.SetHTTP1(true)
	p.upgrades.ResponseHeaderTimeout = upgradeReplyTimeout
	// What was upgraded belongs to one caller. A connection that was refused to be is not used
	// again either: more than one reply may have come on it, of which the next caller would get
	// the second, if it asks before that is noticed.
	p.upgrades.DisableKeepAlives = true
	return p, nil
}

// newTransport leaves bodies as they are: the caller asked for an encoding, not
// the gateway.
func (l *route) newTransport(roots *x509.CertPool) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, dialTimeout)
			defer cancel()
			return l.dialer.DialMember(ctx, l.member, targetAPIServer)
		},
		TLSClientConfig:        &tls.Config{RootCAs: roots, ServerName: l.serverName, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    handshakeTimeout,
		DisableCompression:     true,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConnsPerHost:    32,
		MaxResponseHeaderBytes: maxReplyHeader,
		WriteBufferSize:        32 << 10,
		ReadBufferSize:         32 << 10,
	}
}

func (p *pool) closeIdle() {
	p.streams.CloseIdleConnections()
	p.narrow.CloseIdleConnections()
	p.upgrades.CloseIdleConnections()
}

// close ends what is idle; requests under way end with their tunnel.
func (l *route) close() {
	if p := l.current.Load(); p != nil {
		p.closeIdle()
	}
	l.grants.close()
}

// errCredential is in the chain of an error because of which there is no
// credential to send.
var errCredential = errors.New("no usable credential")

// send gives the member a request with the gateway's token of this moment. A
// request without a body is sent a second time if the member did not know the
// token and there is a newer one by now.
func (l *route) send(out *http.Request, upgrade bool) (*http.Response, error) {
	res, used, err := l.sendOnce(out, upgrade)
	if err != nil || res.StatusCode != http.StatusUnauthorized || hasBody(out) {
		return res, err
	}
	if now, err := l.credentials.Credential(l.member); err != nil || now.Token == used {
		//lint:ignore nilerr The first answer stands where there is no other credential.
		return res, nil
	}
	_, _ = io.CopyN(io.Discard, res.Body, 4<<10)
	_ = res.Body.Close()
	res, _, err = l.sendOnce(out, upgrade)
	return res, err
}

func (l *route) sendOnce(out *http.Request, upgrade bool) (*http.Response, string, error) {
	credential, err := l.credentials.Credential(l.member)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", errCredential, err)
	}
	if credential.Token == "" {
		return nil, "", fmt.Errorf("%w: the token is empty", errCredential)
	}
	p, err := l.poolFor(credential.CA)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", errCredential, err)
	}
	transport := p.streams
	switch {
	case upgrade:
		transport = p.upgrades
	case isNarrow(out.Context()):
		transport = p.narrow
	}
	res, err := l.vigil.roundTrip(transport, authorized(out, credential.Token))
	if err != nil {
		return nil, credential.Token, err
	}
	res.Request = out
	return res, credential.Token, nil
}

// authorized is the request with the token, and without the trace by which
// informational replies of the member would reach the caller.
func authorized(out *http.Request, token string) *http.Request {
	r := out.WithContext(bare{out.Context()})
	r.Header = maps.Clone(out.Header)
	r.Header[headerAuthorization] = []string{"Bearer " + token}
	return r
}

func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// bare is a context that ends with its parent and carries nothing else of it than
// its span.
//
//lint:ignore containedctx It is a context itself.
type bare struct{ context.Context }

// Value returns the parent's if it is a span.
func (c bare) Value(key any) any {
	if span, ok := c.Context.Value(key).(trace.Span); ok {
		return span
	}
	return nil
}

// AfterFunc spares a goroutine per context that is derived from this one.
func (c bare) AfterFunc(f func()) func() bool { return context.AfterFunc(c.Context, f) }

// routes holds the routes of known members.
type routes struct {
	newRoute func(member string) *route
	// mu guards byMember.
	mu       sync.Mutex
	byMember map[string]*route
}

// of returns the route of a member that the caller knows to exist.
func (l *routes) of(member string) *route {
	l.mu.Lock()
	defer l.mu.Unlock()
	if found, ok := l.byMember[member]; ok {
		return found
	}
	made := l.newRoute(member)
	l.byMember[member] = made
	return made
}

// forget drops a member's route.
func (l *routes) forget(member string) {
	l.mu.Lock()
	found, ok := l.byMember[member]
	delete(l.byMember, member)
	l.mu.Unlock()
	if ok {
		found.close()
	}
}

func (l *routes) closeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for member, route := range l.byMember {
		route.close()
		delete(l.byMember, member)
	}
}
