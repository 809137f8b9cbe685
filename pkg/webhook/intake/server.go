// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
)

// Time limits for the parts of a request. An API server abandons a review after five seconds, and
// sends it immediately.
const (
	headerTime  = 3 * time.Second
	readTime    = 6 * time.Second
	writeTime   = 15 * time.Second
	idleTime    = 90 * time.Second
	maxHeader   = 64 << 10
	stoppedWait = 20 * time.Second
)

// Limits for reviews in flight. Unproved ones have a small share of their own while they are
// accepted at all.
const (
	smallBytes, largeBytes       = 16 << 20, 32 << 20
	smallUnproved, largeUnproved = 4 << 20, 2 * maxReview
)

// Options configure a Server.
type Options struct {
	// Address is host:port.
	Address string
	// GetCertificate returns the serving certificate.
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// FrontProxy identifies the hub's API server for aggregated servers. If nil, the server accepts
	// no reviews through the aggregated group.
	FrontProxy *authenticatorfactory.RequestHeaderConfig
	// ClientCA verifies client certificates of direct reviews. If nil, none is accepted.
	ClientCA dynamiccertificates.CAContentProvider
	// Unproved is true while direct reviews without proof are accepted. If nil, they never are.
	Unproved func(context.Context) bool
}

// Server is a controller-runtime webhook server that only the hub's API server can call. Handlers
// are registered as usual, under the paths of direct reviews.
type Server struct {
	// Server holds the handlers and their metrics.
	ctrlwebhook.Server
	options Options
	// frontProxy and certificate authenticate callers, through the hub's API server and directly;
	// cas are the CAs that verify them.
	frontProxy, certificate authenticator.Request
	cas                     []dynamiccertificates.CAContentProvider
	proved, unproved        *budget
	listening               chan struct{}
}

// NewServer returns a server that does not listen yet.
func NewServer(options Options) *Server {
	s := &Server{
		Server:    ctrlwebhook.NewServer(ctrlwebhook.Options{WebhookMux: http.NewServeMux()}),
		options:   options,
		proved:    newBudget(smallBytes, largeBytes),
		unproved:  newBudget(smallUnproved, largeUnproved),
		listening: make(chan struct{}),
	}
	if proxy := options.FrontProxy; proxy != nil {
		s.frontProxy, s.cas = frontProxy(proxy), append(s.cas, proxy.CAContentProvider)
	}
	if ca := options.ClientCA; ca != nil {
		s.certificate, s.cas = certificate(ca), append(s.cas, ca)
	}
	return s
}

// Start serves until the context ends, and then finishes the reviews in flight. It speaks HTTP/1.1,
// like the API server to webhooks: many connections reach many replicas.
func (s *Server) Start(ctx context.Context) error {
	var l net.ListenConfig
	listener, err := l.Listen(ctx, "tcp", s.options.Address)
	if err != nil {
		return fmt.Errorf("listening for reviews: %w", err)
	}
	server := &http.Server{
		Handler:           http.HandlerFunc(s.ServeHTTP),
		ReadHeaderTimeout: headerTime, ReadTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeader,
		BaseContext:    func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	for _, ca := range s.cas {
		if runner, ok := ca.(dynamiccertificates.ControllerRunner); ok {
			go runner.Run(following, 1)
		}
	}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stoppedWait)
		defer cancel()
		stopped <- server.Shutdown(ending)
	}()
	log.FromContext(ctx).Info("Taking reviews", "address", listener.Addr().String())
	close(s.listening)
	err = server.Serve(tls.NewListener(listener, s.tls()))
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("taking reviews: %w", err)
	}
	return <-stopped
}

func (s *Server) tls() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"},
		GetCertificate: s.options.GetCertificate,
		// Whether a certificate proves anything depends on the request, and on a CA that may
		// change: caller.go verifies it for each request.
		ClientAuth: tls.RequestClientCert,
	}
}

// StartedChecker is healthy once the port is open and the API server's identity can be verified.
func (s *Server) StartedChecker() healthz.Checker {
	return func(*http.Request) error {
		select {
		case <-s.listening:
		default:
			return errors.New("the port for reviews is not open yet")
		}
		for _, ca := range s.cas {
			if _, known := ca.VerifyOptions(); !known {
				return fmt.Errorf("API servers cannot authenticate: there is no CA in %s", ca.Name())
			}
		}
		return nil
	}
}

// ServeHTTP decides by a request's line, headers and certificate, before its body is read.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.frontProxy != nil && strings.HasPrefix(r.URL.Path, "/apis/") {
		s.serveAggregated(w, r)
		return
	}
	switch {
	case r.Method != http.MethodPost:
		// The API server repeatedly asks for the schema of each group, and for the discovery of all
		// groups at once. It accepts 404 as none. It would log any other answer to the former as an
		// error, and ask sooner.
		refuse(w, http.StatusNotFound, "there are only reviews here")
	case proved(s.certificate, r) != nil:
		s.proved.serve(w, r, s.WebhookMux())
	case s.options.Unproved != nil && s.options.Unproved(r.Context()):
		s.unproved.serve(w, r, s.WebhookMux())
	default:
		refuse(w, http.StatusUnauthorized, "only the hub's API server may call the webhooks, and must authenticate")
	}
}

// serveAggregated answers requests through the hub's API server. Its users can send such requests
// too, so only its own ones are reviews.
func (s *Server) serveAggregated(w http.ResponseWriter, r *http.Request) {
	caller := proved(s.frontProxy, r)
	path, review := strings.CutPrefix(r.URL.Path, AggregatedPath(""))
	switch {
	case caller == nil:
		refuse(w, http.StatusUnauthorized, "only the hub's API server may call the webhooks, and must authenticate")
	case r.URL.Path == groupPath() && r.Method == http.MethodGet:
		serveGroup(w)
	case !review || !strings.HasPrefix(path, "/"):
		refuse(w, http.StatusNotFound, "there is nothing here")
	case !isAPIServer(caller):
		refuse(w, http.StatusForbidden, "only the hub's API server itself may ask for reviews")
	default:
		inner := r.Clone(r.Context())
		inner.URL.Path, inner.URL.RawPath = path, ""
		s.proved.serve(w, inner, s.WebhookMux())
	}
}

// refuse answers without reading the body, and closes the connection: the rest of the body would
// have to be read before the next request.
func refuse(w http.ResponseWriter, code int, why string) {
	w.Header().Set("Connection", "close")
	http.Error(w, why, code)
}
