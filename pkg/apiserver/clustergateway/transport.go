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

// Targets of a dial to a member, as its agent names them.
const (
	targetAPIServer = "apiserver"
	targetAgent     = "agent"
)

const (
	dialTimeout         = 10 * time.Second
	handshakeTimeout    = 10 * time.Second
	idleTimeout         = 5 * time.Minute
	pingAfter           = 15 * time.Second
	pingTimeout         = 15 * time.Second
	upgradeReplyTimeout = time.Minute
	maxReplyHeader      = 1 << 20
)

// route holds everything that the gateway keeps for one member: its connections, the grants of its
// agent, and the decisions of its API server about long-running requests.
type route struct {
	member     string
	config     Config
	dialer     Dialer
	grants     *grants
	actions    *actions
	agentProbe agentProbe
	readers    *slowReaders

	current atomic.Pointer[pool]
	// mu makes sure that only one new pool is created.
	mu sync.Mutex
}

// newRoute returns a route; dialer is the one of the config with spans.
func newRoute(member string, c Config, dialer Dialer, readers *slowReaders) *route {
	probe := agentProbe{member: member, liveness: c.Liveness}
	l := &route{member: member, config: c, dialer: dialer, grants: newGrants(member, c.Dialer, probe), agentProbe: probe, readers: readers}
	l.actions = newActions(c.MemberServerName, l.send)
	return l
}

// pool holds the connections that are verified against one CA. Requests of all callers share them,
// because each request carries the gateway's token and the caller's identity.
type pool struct {
	ca      []byte
	created time.Time
	// short, long and narrow speak HTTP/2 where the member does. They differ in their windows.
	short, long, narrow *http.Transport
	// upgrades speaks HTTP/1.1 only, since HTTP/2 cannot switch protocols.
	upgrades *http.Transport
}

// poolFor creates a new pool for another CA, and after the member has got or lost a tunnel: older
// connections may use a tunnel that is about to end, and would lose requests with it, or a slower
// one than new connections do. Requests in flight stay on their connections.
func (l *route) poolFor(ca []byte) (*pool, error) {
	lastSessionChange := l.config.Liveness.LastSessionChange(l.member)
	fits := func(p *pool) bool {
		return p != nil && string(p.ca) == string(ca) && !lastSessionChange.After(p.created)
	}
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
	p := &pool{
		ca: ca, created: time.Now(),
		short: l.newStreams(roots, windowShort), long: l.newStreams(roots, windowLong), narrow: l.newStreams(roots, windowNarrow),
		upgrades: l.newTransport(roots),
	}
	p.upgrades.Protocols = new(http.Protocols)
	p.upgrades.Protocols.SetHTTP1(true)
	p.upgrades.ResponseHeaderTimeout = upgradeReplyTimeout
	// An upgraded connection belongs to one caller. A connection whose upgrade was refused is not
	// reused either: it may hold a second reply, which the next caller would get if it sends its
	// request before that is noticed.
	p.upgrades.DisableKeepAlives = true
	return p, nil
}

// newStreams speaks HTTP/2 with a window of that many bytes for each reply.
func (l *route) newStreams(roots *x509.CertPool, window int) *http.Transport {
	t := l.newTransport(roots)
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.Protocols.SetHTTP2(true)
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout, MaxReceiveBufferPerStream: window}
	return t
}

// newTransport does not decompress bodies, because the encoding was the caller's choice.
func (l *route) newTransport(roots *x509.CertPool) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, dialTimeout)
			defer cancel()
			return l.dialer.DialMember(ctx, l.member, targetAPIServer)
		},
		TLSClientConfig:        &tls.Config{RootCAs: roots, ServerName: l.config.MemberServerName, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    handshakeTimeout,
		DisableCompression:     true,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConnsPerHost:    32,
		MaxResponseHeaderBytes: maxReplyHeader,
		WriteBufferSize:        32 << 10,
		ReadBufferSize:         32 << 10,
	}
}

// of returns the transport for a request.
func (p *pool) of(x *exchange, narrow, upgrade bool) *http.Transport {
	switch {
	case upgrade:
		return p.upgrades
	case narrow:
		return p.narrow
	case x != nil && x.request.LongRunning:
		return p.long
	}
	return p.short
}

func (p *pool) closeIdle() {
	for _, t := range []*http.Transport{p.short, p.long, p.narrow, p.upgrades} {
		t.CloseIdleConnections()
	}
}

// close closes idle connections; requests in flight end with their tunnel.
func (l *route) close() {
	if p := l.current.Load(); p != nil {
		p.closeIdle()
	}
	l.grants.close()
}

// errCredential is in the chain of an error if there is no credential to send.
var errCredential = errors.New("no usable credential")

// send sends a request to the member with the gateway's current token. It sends the request a second
// time if the member did not accept the token and there is a newer one by now.
func (l *route) send(out *http.Request, upgrade bool) (*http.Response, error) {
	res, used, err := l.sendOnce(out, upgrade)
	if err != nil || res.StatusCode != http.StatusUnauthorized {
		return res, err
	}
	second, ok := again(out)
	if !ok {
		return res, nil
	}
	if now, err := l.config.Credentials.Credential(l.member); err != nil || now.Token == used {
		//lint:ignore nilerr Without another credential the first reply is final.
		return res, nil
	}
	_, _ = io.CopyN(io.Discard, res.Body, 4<<10)
	_ = res.Body.Close()
	res, _, err = l.sendOnce(second, upgrade)
	return res, err
}

func (l *route) sendOnce(out *http.Request, upgrade bool) (*http.Response, string, error) {
	credential, err := l.config.Credentials.Credential(l.member)
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
	x := exchangeFrom(out.Context())
	transport := p.of(x, isNarrow(out.Context()), upgrade)
	res, err := l.agentProbe.roundTrip(transport, authorized(out, credential.Token), x)
	if err != nil {
		return nil, credential.Token, err
	}
	res.Request = out
	if !upgrade {
		l.readers.follow(res, x, transport.HTTP2.MaxReceiveBufferPerStream)
	}
	return res, credential.Token, nil
}

// authorized is the request with the token. It drops the trace hook through which informational
// replies of the member would reach the caller.
func authorized(out *http.Request, token string) *http.Request {
	r := out.WithContext(bare{out.Context()})
	r.Header = maps.Clone(out.Header)
	r.Header[headerAuthorization] = []string{"Bearer " + token}
	return r
}

// bare is a context that ends with its parent. Of the parent's values it carries only the
// span.
//
//nolint:containedctx // It is a context itself.
type bare struct{ context.Context }

// Value returns only the parent's span.
func (c bare) Value(key any) any {
	if span, ok := c.Context.Value(key).(trace.Span); ok {
		return span
	}
	return nil
}

// AfterFunc saves a goroutine for each context that is derived from this one.
func (c bare) AfterFunc(f func()) func() bool { return context.AfterFunc(c.Context, f) }

// routes holds the routes of known members.
type routes struct {
	newRoute func(member string) *route
	// mu guards byMember.
	mu       sync.Mutex
	byMember map[string]*route
}

// of returns the route of a member, which the caller knows to exist.
func (l *routes) of(member string) *route {
	l.mu.Lock()
	defer l.mu.Unlock()
	if found, ok := l.byMember[member]; ok {
		return found
	}
	added := l.newRoute(member)
	l.byMember[member] = added
	return added
}

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
