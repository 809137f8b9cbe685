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
	// portHeaderTime bounds a handshake, and the reading of a request's header.
	portHeaderTime = 10 * time.Second
	// portMaxHeader bounds a request's header.
	portMaxHeader = 16 << 10
	// portAuthentications is how many agents are authenticated at a time; the others
	// wait.
	portAuthentications = 64
)

// Port is the gateway's own port for agents: TLS 1.3, and on it the same upgraded
// request as through the hub's API server, with which an agent names its member. By
// ALPN other protocols can have the same port.
type Port struct {
	// Registry takes the sessions.
	Registry *Registry
	// TLS is what the port shows, and, with ClientCAs, whose certificates it
	// believes. It is not changed.
	TLS *tls.Config
	// Path returns the member that a request's path names; false for other paths.
	Path func(path string) (member string, ok bool)
	// Authenticate returns whose bearer token it is; false if it is no valid one for
	// this port, an error if that could not be found out.
	Authenticate func(ctx context.Context, token string) (username string, ok bool, err error)
	// IsAgentOf is true for a user who is the member's agent.
	IsAgentOf func(ctx context.Context, username, member string) (bool, error)
	// Others take over connections on which another protocol was agreed, by its name
	// in ALPN, after the handshake. They return when they are done with it. Optional.
	Others map[string]func(ctx context.Context, conn *tls.Conn)
}

// Serve takes agents until ctx ends. Sessions go on until the Registry is closed, and
// connections of other protocols until who took them over closes them.
func (p *Port) Serve(ctx context.Context, listener net.Listener) error {
	config := p.TLS.Clone()
	config.MinVersion = tls.VersionTLS13
	config.NextProtos = append([]string{"http/1.1"}, p.otherNames()...)
	config.DynamicRecordSizingDisabled = true
	if config.ClientCAs != nil {
		config.ClientAuth = tls.VerifyClientCertIfGiven
	}
	server := &http.Server{
		Handler:           p.handler(),
		ReadHeaderTimeout: portHeaderTime,
		// For those who were refused: a stranger does not keep a connection.
		IdleTimeout:    portHeaderTime,
		MaxHeaderBytes: portMaxHeader,
		TLSNextProto:   p.takeovers(ctx),
		ErrorLog:       log.New(debugLines{ctx}, "", 0),
		// Sessions outlive ctx: they drain.
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	// With a context that has ended it waits for nobody, and cuts nobody.
	stop := context.AfterFunc(ctx, func() { _ = server.Shutdown(ctx) })
	defer stop()
	if err := server.Serve(tls.NewListener(batchListener{listener}, config)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the port of agents: %w", err)
	}
	return nil
}

// debugLines are for what strangers do: a load balancer that looks whether the port is
// open leaves a broken handshake every few seconds. Agents tell their own side of it.
//
//lint:ignore containedctx A log.Logger writes without one.
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

func (p *Port) takeovers(ctx context.Context) map[string]func(*http.Server, *tls.Conn, http.Handler) {
	all := map[string]func(*http.Server, *tls.Conn, http.Handler){}
	for name, take := range p.Others {
		all[name] = func(_ *http.Server, conn *tls.Conn, _ http.Handler) { take(ctx, conn) }
	}
	return all
}

// batchListener lets sessions make fewer system calls.
type batchListener struct{ net.Listener }

func (l batchListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return native.Batch(conn), nil
}

// handler authenticates before anything else of the request counts.
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
			// The goroutine of the request would hold its buffers and its stack for as long as the
			// session lasts: as much as the session itself.
			go p.Registry.serveUpgraded(context.WithoutCancel(req.Context()), member, conn)
		}
	})
}

// admit says for which member the request speaks, or why for none.
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

// user is who sent the request: the subject of a verified certificate, or whose
// token it carries.
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
