// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"crypto/tls"
	"crypto/x509"
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
	// TLS is the port's certificate. It is not changed.
	TLS *tls.Config
	// ClientCAs returns the CAs of accepted client certificates, for each connection and for reviews
	// of sessions, so that a rotation needs no restart. Nil: no certificates.
	ClientCAs func() (*x509.CertPool, error)
	// Path returns the member that a request's path names; false for other paths.
	Path func(path string) (member string, ok bool)
	// Authenticate returns the owner of a bearer token and when the token expires. ok is false if the
	// token is not valid for this port. An error means that this is not known.
	Authenticate func(ctx context.Context, token string) (username string, expires time.Time, ok bool, err error)
	// Watched is true if the sessions of the member end by [Registry.Disconnect] when the credentials
	// of this user are revoked. Such a token is authenticated once, others during the whole session.
	// Optional.
	Watched func(username, member string) bool
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
	if p.ClientCAs != nil {
		config.GetConfigForClient = p.verifyingClients(config.Clone())
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

// verifyingClients returns the configuration of one handshake, with the current CAs of clients.
func (p *Port) verifyingClients(config *tls.Config) func(*tls.ClientHelloInfo) (*tls.Config, error) {
	return func(*tls.ClientHelloInfo) (*tls.Config, error) {
		pool, err := p.ClientCAs()
		if err != nil {
			return nil, fmt.Errorf("reading the CAs of clients: %w", err)
		}
		// A session must not be resumed with older CAs.
		current := config.Clone()
		current.SessionTicketsDisabled = true
		current.ClientCAs, current.ClientAuth = pool, tls.VerifyClientCertIfGiven
		return current, nil
	}
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

// handler authenticates before it reads anything else in the request. A nonce authenticates a data
// connection.
func (p *Port) handler() http.Handler {
	slots := make(chan struct{}, portAuthentications)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if member, ok := p.Path(req.URL.Path); ok && hasToken(req.Header, "Upgrade", DataProtocol) {
			p.Registry.serveData(w, req, member)
			return
		}
		select {
		case slots <- struct{}{}:
		case <-req.Context().Done():
			return
		}
		member, credential, refusal := p.admit(req)
		<-slots
		if refusal != nil {
			writeStatus(w, refusal)
			return
		}
		if conn := p.Registry.upgrade(w, req, member); conn != nil {
			// The request's goroutine would keep its buffers and stack for the whole session. They
			// are as large as the session itself.
			go p.Registry.serveUpgraded(context.WithoutCancel(req.Context()), member, conn, credential)
		}
	})
}

// admit returns the member that the request may serve and the credential that proves it, or the
// reason of a refusal.
func (p *Port) admit(req *http.Request) (string, Credential, *metav1.Status) {
	agent, refusal := p.authenticate(req)
	if refusal != nil {
		return "", Credential{}, refusal
	}
	member, ok := p.Path(req.URL.Path)
	if !ok {
		return "", Credential{}, refusalOf(http.StatusNotFound, metav1.StatusReasonNotFound, "this port serves tunnels only")
	}
	is, err := p.IsAgentOf(req.Context(), agent.user, member)
	if err != nil {
		return "", Credential{}, refusalOf(http.StatusInternalServerError, metav1.StatusReasonInternalError, "the identity of the member's agent could not be read")
	}
	if !is {
		return "", Credential{}, refusalOf(http.StatusForbidden, metav1.StatusReasonForbidden, fmt.Sprintf("user %q is not the agent of this member", agent.user))
	}
	return member, p.credential(agent, member), nil
}

// portAgent is a user, and the certificate or the token that proves it.
type portAgent struct {
	user    string
	expires time.Time
	chain   []*x509.Certificate
	token   string
}

// authenticate returns the subject of a verified certificate, or the owner of the token.
func (p *Port) authenticate(req *http.Request) (portAgent, *metav1.Status) {
	if req.TLS != nil && len(req.TLS.VerifiedChains) > 0 {
		leaf := req.TLS.PeerCertificates[0]
		return portAgent{user: leaf.Subject.CommonName, expires: leaf.NotAfter, chain: req.TLS.PeerCertificates}, nil
	}
	token, found := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	if !found || token == "" {
		return portAgent{}, refusalOf(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "no bearer token and no verified certificate")
	}
	user, expires, ok, err := p.Authenticate(req.Context(), token)
	if err != nil {
		return portAgent{}, refusalOf(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "the token could not be verified now")
	}
	if !ok {
		return portAgent{}, refusalOf(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "the token is not valid here")
	}
	return portAgent{user: user, expires: expires, token: token}, nil
}

// credential is reviewed during the session. The expiry of a token whose revocation is watched limits
// how long the token opens sessions, not how long these last: agents request such tokens for a few
// minutes only, and tunnels should outlast a hub that issues none. A certificate cannot be revoked: it
// ends with its time or its CA.
func (p *Port) credential(agent portAgent, member string) Credential {
	if agent.token != "" && p.Watched != nil && p.Watched(agent.user, member) {
		agent.expires, agent.token = time.Time{}, ""
	}
	return Credential{atPort: true, Expires: agent.expires, StillValid: func(ctx context.Context) (bool, error) {
		if ok, err := p.stillProves(ctx, agent); !ok || err != nil {
			return false, err
		}
		return p.IsAgentOf(ctx, agent.user, member)
	}}
}

// stillProves is false if the certificate or the token would no longer be accepted. An expired token
// says nothing more: the session ends by that.
func (p *Port) stillProves(ctx context.Context, agent portAgent) (bool, error) {
	switch {
	case agent.chain != nil:
		pool, err := p.ClientCAs()
		if err != nil {
			return false, fmt.Errorf("reading the CAs of clients: %w", err)
		}
		return isSignedBy(agent.chain, pool), nil
	case agent.token != "" && !Credential{Expires: agent.expires}.isExpiredAt(time.Now().Add(reviewPeriod)):
		user, _, ok, err := p.Authenticate(ctx, agent.token)
		return ok && user == agent.user, err
	}
	return true, nil
}

// isSignedBy verifies a client's chain. That its first certificate has expired does not matter here.
func isSignedBy(chain []*x509.Certificate, roots *x509.CertPool) bool {
	intermediates := x509.NewCertPool()
	for _, cert := range chain[1:] {
		intermediates.AddCert(cert)
	}
	now := time.Now()
	if now.After(chain[0].NotAfter) {
		now = chain[0].NotAfter
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: intermediates, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err == nil
}
