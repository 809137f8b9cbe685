// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"fleetgate.io/fleetgate/pkg/tunnel/native"
)

const (
	// portHeaderTime limits a handshake, and the reading of a request's header.
	portHeaderTime = 10 * time.Second
	// portMaxHeader limits the size of a request's header.
	portMaxHeader = 16 << 10
	// portHandshakes limits the connections of one address without a TLS session. All agents may
	// have the address of a load balancer.
	portHandshakes = 512
	// portAuthentications is how many agents are authenticated at a time; the others wait.
	portAuthentications = 64
)

// Port is the gateway's own port for agents. It serves TLS 1.3 and the same upgraded request as
// through the hub's API server, in which an agent names its member. Other protocols can share the
// port through ALPN.
type Port struct {
	Registry *Registry
	// TLS is the port's certificate and, with ClientCAs, the CAs of accepted client certificates.
	// It is not changed.
	TLS *tls.Config
	// Path returns the member that a request's path names; false for other paths.
	Path func(path string) (member string, ok bool)
	// Authenticate returns the owner of a bearer token. ok is false if the token is not valid for
	// this port. An error means that this is not known.
	Authenticate func(ctx context.Context, token string) (username string, ok bool, err error)
	// IsAgentOf is true for a user who is the member's agent.
	IsAgentOf func(ctx context.Context, username, member string) (bool, error)
	// Others serve connections that negotiated another protocol, by its name in ALPN, after the
	// handshake. They return when they are done with it. Optional.
	Others map[string]func(ctx context.Context, conn *tls.Conn)
}

// Serve accepts agents until ctx ends. Sessions continue until the Registry is closed, and
// connections of other protocols until their handler closes them.
func (p *Port) Serve(ctx context.Context, listener net.Listener) error {
	config := p.TLS.Clone()
	config.MinVersion = tls.VersionTLS13
	config.NextProtos = append([]string{"http/1.1"}, p.otherNames()...)
	config.DynamicRecordSizingDisabled = true
	if config.ClientCAs != nil {
		config.ClientAuth = tls.VerifyClientCertIfGiven
	}
	guard := NewGuard(listener, portHandshakes)
	server := &http.Server{
		Handler:           p.handler(),
		ReadHeaderTimeout: portHeaderTime,
		// A refused client must not keep its connection.
		IdleTimeout:    portHeaderTime,
		MaxHeaderBytes: portMaxHeader,
		TLSNextProto:   p.takeovers(ctx, guard),
		ConnState: func(conn net.Conn, state http.ConnState) {
			if state != http.StateNew {
				guard.Admitted(conn.RemoteAddr())
			}
		},
		ErrorLog: log.New(debugLines{ctx}, "", 0),
		// Sessions outlive ctx: they drain.
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	// With an ended context, Shutdown waits for nobody and closes no hijacked connection.
	stop := context.AfterFunc(ctx, func() { _ = server.Shutdown(ctx) })
	defer stop()
	if err := server.Serve(tls.NewListener(batchListener{guard}, config)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the port of agents: %w", err)
	}
	return nil
}

// debugLines logs errors of unknown clients at debug level. A load balancer's probe of the port
// leaves a failed handshake every few seconds. Agents log their own side of a failure.
//
//nolint:containedctx // A log.Logger writes without one.
type debugLines struct{ ctx context.Context }

func (d debugLines) Write(line []byte) (int, error) {
	klog.FromContext(d.ctx).V(2).Info("Port of agents: " + strings.TrimSpace(string(line)))
	return len(line), nil
}

func (p *Port) otherNames() []string {
	var names []string
	for name := range p.Others {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (p *Port) takeovers(ctx context.Context, guard *Guard) map[string]func(*http.Server, *tls.Conn, http.Handler) {
	all := map[string]func(*http.Server, *tls.Conn, http.Handler){}
	for name, take := range p.Others {
		all[name] = func(_ *http.Server, conn *tls.Conn, _ http.Handler) {
			guard.Admitted(conn.RemoteAddr())
			take(ctx, conn)
		}
	}
	return all
}

// batchListener reduces the system calls of sessions.
type batchListener struct{ net.Listener }

func (l batchListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return native.Batch(conn), nil
}

// handler authenticates before it looks at anything else in the request.
func (p *Port) handler() http.Handler {
	slots := make(chan struct{}, portAuthentications)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		select {
		case slots <- struct{}{}:
		case <-req.Context().Done():
			return
		}
		member, refusal := p.admit(req)
		<-slots
		if refusal != nil {
			writeStatus(w, refusal)
			return
		}
		if conn := p.Registry.upgrade(w, req, member); conn != nil {
			// The request's goroutine would keep its buffers and stack for the whole session. They
			// are as large as the session itself.
			go p.Registry.serveUpgraded(context.WithoutCancel(req.Context()), member, conn)
		}
	})
}

// admit returns the member that the request may serve, or the reason of a refusal.
func (p *Port) admit(req *http.Request) (string, *metav1.Status) {
	user, refusal := p.user(req)
	if refusal != nil {
		return "", refusal
	}
	member, ok := p.Path(req.URL.Path)
	if !ok {
		return "", refusalOf(http.StatusNotFound, metav1.StatusReasonNotFound, "this port serves tunnels only")
	}
	is, err := p.IsAgentOf(req.Context(), user, member)
	if err != nil {
		return "", refusalOf(http.StatusInternalServerError, metav1.StatusReasonInternalError, "whether this identity is the member's could not be looked up")
	}
	if !is {
		return "", refusalOf(http.StatusForbidden, metav1.StatusReasonForbidden, fmt.Sprintf("user %q is not the agent of this member", user))
	}
	return member, nil
}

// user is who sent the request: the subject of a verified certificate, or the owner of the token.
func (p *Port) user(req *http.Request) (string, *metav1.Status) {
	if req.TLS != nil && len(req.TLS.VerifiedChains) > 0 {
		return req.TLS.VerifiedChains[0][0].Subject.CommonName, nil
	}
	token, found := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	if !found || token == "" {
		return "", refusalOf(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "no bearer token and no verified certificate")
	}
	user, ok, err := p.Authenticate(req.Context(), token)
	if err != nil {
		return "", refusalOf(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "the token could not be verified now")
	}
	if !ok {
		return "", refusalOf(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "the token is not valid here")
	}
	return user, nil
}
