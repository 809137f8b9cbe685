// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"fleetgate.io/fleetgate/pkg/tunnel"
)

// Dialer opens connections into members, however their agents are connected.
type Dialer interface {
	DialMember(ctx context.Context, member, target string) (net.Conn, error)
}

// FrontendServerOptions of a FrontendServer; Credentials, Authorize, Dialer and Certificate are
// required, zero values of the others are sane.
type FrontendServerOptions struct {
	// Credentials authenticate frontends.
	Credentials Credentials
	// Authorize decides whether an identity may dial into a member. It is called for every dial.
	Authorize func(ctx context.Context, id Identity, member string) (allowed bool, err error)
	Dialer    Dialer
	// Certificate is the server's.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Domain, if not empty, is the suffix of server names whose first label is the member:
	// <member>.<domain>. It is for frontends that dial the addresses of one member, such as its API
	// server.
	Domain string
	// Allow lists what may be dialed besides the member's API server.
	Allow Allow
	// MaxConnections limits those of all frontends; 0 is 10,000.
	MaxConnections int
	// DialTimeout limits a dial; 0 is 10 s.
	DialTimeout time.Duration
	// Metrics counts connections and packets. If nil, there are no metrics.
	Metrics *Metrics
}

// FrontendServer lets Konnectivity frontends dial into members with ProxyService, as
// konnectivity-client speaks it, or with HTTP CONNECT. Both share one port and differ by ALPN: a
// peer without a protocol uses HTTP/1.1.
type FrontendServer struct {
	options FrontendServerOptions
	open    atomic.Int64
}

// NewFrontendServer returns a server, or an error if an option is missing.
func NewFrontendServer(o FrontendServerOptions) (*FrontendServer, error) {
	if err := o.Credentials.validate(); err != nil {
		return nil, err
	}
	if o.Authorize == nil || o.Dialer == nil || o.Certificate == nil {
		return nil, errors.New("a listener for frontends needs Authorize, a Dialer and a certificate")
	}
	o.Domain = normalHost(strings.TrimPrefix(o.Domain, "."))
	o.MaxConnections = orElse(o.MaxConnections, 10_000)
	o.DialTimeout = orElse(o.DialTimeout, 10*time.Second)
	if o.Metrics == nil {
		m, err := NewMetrics(nil)
		if err != nil {
			return nil, err
		}
		o.Metrics = m
	}
	return &FrontendServer{options: o}, nil
}

const (
	// frontendStreams limits the streams, and so connections, of one frontend's HTTP/2 connection.
	frontendStreams = 2048
	// readHeaderTime limits a CONNECT request.
	readHeaderTime = 10 * time.Second
)

// Serve serves frontends at a listener, which it owns, until ctx ends. Then it accepts no more,
// waits up to drain for open connections, and returns when all have ended.
func (f *FrontendServer) Serve(ctx context.Context, l net.Listener, drain time.Duration) error {
	grpcServer := newGRPCServer(frontendStreams, frontendWindow)
	grpcServer.RegisterService(service("ProxyService", "Proxy", f.proxy), nil)
	// Connections outlive ctx for the time of the drain.
	living, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	httpServer := &http.Server{
		Handler:           http.HandlerFunc(f.connect),
		ReadHeaderTimeout: readHeaderTime,
		IdleTimeout:       readHeaderTime,
		MaxHeaderBytes:    maxHeaders,
		BaseContext:       func(net.Listener) context.Context { return living },
		ErrorLog:          log.New(quiet{}, "", 0),
		// gRPC serves HTTP/2.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	streams, requests := newConnListener(l.Addr()), newConnListener(l.Addr())
	var serving sync.WaitGroup
	serving.Go(func() { _ = grpcServer.Serve(streams) })
	serving.Go(func() { _ = httpServer.Serve(requests) })
	config := f.options.Credentials.tlsConfig(f.options.Certificate, []string{protocolGRPC, protocolHTTP})
	err := accept(ctx, l, config, map[string]func(*tls.Conn){
		protocolGRPC: func(c *tls.Conn) { streams.hand(c) },
		protocolHTTP: func(c *tls.Conn) { requests.hand(c) },
		"":           func(c *tls.Conn) { requests.hand(c) },
	})
	f.drain(living, drain)
	end()
	grpcServer.Stop()
	_ = httpServer.Close()
	serving.Wait()
	f.drain(context.WithoutCancel(ctx), drain)
	return err
}

const protocolHTTP = "http/1.1"

// quiet drops what net/http logs: failed handshakes, which are counted here.
type quiet struct{}

func (quiet) Write(p []byte) (int, error) { return len(p), nil }

// drain waits until no connection is open, at most for grace.
func (f *FrontendServer) drain(ctx context.Context, grace time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	ticker := time.NewTicker(drainPoll)
	defer ticker.Stop()
	for f.open.Load() > 0 {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// take counts a connection, unless there are too many.
func (f *FrontendServer) take() bool {
	if f.open.Add(1) > int64(f.options.MaxConnections) {
		f.open.Add(-1)
		return false
	}
	return true
}

func (f *FrontendServer) release() { f.open.Add(-1) }

// dialError is a refusal with its HTTP status.
type dialError struct {
	status int
	reason string
	err    error
}

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// dial authorizes and opens one connection for a frontend. Its errors are sent to the frontend.
func (f *FrontendServer) dial(ctx context.Context, id Identity, serverName, protocol, address string) (net.Conn, *dialError) {
	conn, refusal := f.tryDial(ctx, id, serverName, protocol, address)
	if refusal == nil {
		return conn, nil
	}
	f.options.Metrics.refused.WithLabelValues("frontends", refusal.reason).Inc()
	klog.FromContext(ctx).V(2).Info("Konnectivity frontend's dial failed", "user", id.Name, "address", printable(address), "reason", refusal.Error())
	return nil, refusal
}

func (f *FrontendServer) tryDial(ctx context.Context, id Identity, serverName, protocol, address string) (net.Conn, *dialError) {
	ctx, cancel := context.WithTimeout(ctx, f.options.DialTimeout)
	defer cancel()
	if protocol != protocolTCP {
		return nil, &dialError{http.StatusBadRequest, "protocol", fmt.Errorf("protocol %q is not served, only tcp is", protocol)}
	}
	member, target, err := route(f.options.Domain, serverName, address)
	if err != nil {
		return nil, &dialError{http.StatusBadRequest, "address", err}
	}
	// A frontend without permission must not learn whether the member exists.
	allowed, err := f.options.Authorize(ctx, id, member)
	if err != nil {
		return nil, &dialError{http.StatusServiceUnavailable, "review", errors.New("the gateway cannot determine whether this is allowed")}
	}
	if !allowed {
		return nil, &dialError{http.StatusForbidden, "forbidden", fmt.Errorf("user %q cannot create tunnels/dial of member %q in group tunnel.fleetgate.io", id.Name, member)}
	}
	if target != tunnel.APIServer && !f.options.Allow.has(target) {
		return nil, &dialError{http.StatusForbidden, "target", fmt.Errorf("%s: %w", target, errNotAllowed)}
	}
	conn, err := f.options.Dialer.DialMember(ctx, member, target)
	if err != nil {
		if tunnel.IsNotConnected(err) {
			f.options.Metrics.dialFailure("no_agent")
		}
		return nil, &dialError{statusOf(err), "dial", err}
	}
	return conn, nil
}

func statusOf(err error) int {
	switch {
	case tunnel.IsNotConnected(err):
		return http.StatusServiceUnavailable
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}

// route returns the member and the target of a dial. If the server's name is below the domain, it
// names the member, and the address is one on the member. Otherwise the address is <member>:<port>
// and means the member's API server: that is how frontends of a hub dial it.
func route(domain, serverName, address string) (member, target string, err error) {
	parsed, err := parseAddress(address)
	if err != nil {
		return "", "", err
	}
	if member, ok := strings.CutSuffix(normalHost(serverName), "."+domain); ok && domain != "" && member != "" && !strings.Contains(member, ".") {
		if parsed.host == member || isAPIServerName(parsed.host) {
			return member, tunnel.APIServer, nil
		}
		return member, parsed.String(), nil
	}
	if parsed.ip.IsValid() || strings.ContainsAny(parsed.host, ".:") {
		return "", "", fmt.Errorf("address %s names no member: dial <member>:443, or name the member in the server's name", parsed)
	}
	return parsed.host, tunnel.APIServer, nil
}

// isAPIServerName is true for the names of every cluster's API server inside the cluster.
func isAPIServerName(host string) bool {
	switch host {
	case "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local":
		return true
	}
	return false
}
