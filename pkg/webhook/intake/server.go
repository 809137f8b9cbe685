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

// How long the parts of a request may take. An API server gives a review up after
// five seconds, and sends it at once.
const (
	headerTime  = 3 * time.Second
	readTime    = 6 * time.Second
	writeTime   = 15 * time.Second
	idleTime    = 90 * time.Second
	maxHeader   = 64 << 10
	stoppedWait = 20 * time.Second
)

// What reviews under way may hold. Those that nobody proved get a little, beside the
// others, while they are taken at all.
const (
	smallBytes, largeBytes       = 16 << 20, 32 << 20
	smallUnproved, largeUnproved = 4 << 20, 2 * maxReview
)

// Options are what a Server is made of.
type Options struct {
	// Address is host:port.
	Address string
	// GetCertificate returns what the server shows.
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// FrontProxy is how the hub's API server proves itself to aggregated servers. If nil,
	// reviews are not taken through the aggregated group.
	FrontProxy *authenticatorfactory.RequestHeaderConfig
	// ClientCA verifies client certificates that are good for reviews sent here directly.
	// If nil, none is.
	ClientCA dynamiccertificates.CAContentProvider
	// Unproved says whether reviews that come directly and without proof are taken now.
	// If nil, they never are.
	Unproved func(context.Context) bool
}

// Server is a controller-runtime webhook server that only the hub's API server can
// ask. Handlers are registered as there, under the paths of direct reviews.
type Server struct {
	// Server keeps the handlers, and measures them.
	ctrlwebhook.Server
	options Options
	// frontProxy and certificate tell who asks, through the hub's API server and directly;
	// cas are what they verify it by.
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

// Start serves until the context ends; reviews under way are answered then. It speaks
// HTTP/1.1, like the API server to webhooks: many connections reach many replicas.
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
		// Whether a certificate proves anything depends on what is asked, and on a CA that may
		// change: caller.go verifies it for each request.
		ClientAuth: tls.RequestClientCert,
	}
}

// StartedChecker is healthy once the port is open and the API server can prove itself.
func (s *Server) StartedChecker() healthz.Checker {
	return func(*http.Request) error {
		select {
		case <-s.listening:
		default:
			return errors.New("the port for reviews is not open yet")
		}
		for _, ca := range s.cas {
			if _, known := ca.VerifyOptions(); !known {
				return fmt.Errorf("no API server can prove itself: there is no CA in %s", ca.Name())
			}
		}
		return nil
	}
}

// ServeHTTP takes a request by its line, headers and certificate; only then is its
// body read.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.frontProxy != nil && strings.HasPrefix(r.URL.Path, "/apis/") {
		s.serveAggregated(w, r)
		return
	}
	switch {
	case strings.HasPrefix(r.URL.Path, "/openapi/"):
		// The API server asks each group for its schema again and again, and takes this for none. Anything else it
		// would log as an error, and ask for sooner.
		refuse(w, http.StatusNotFound, "reviews have no schema")
	case proved(s.certificate, r) != nil:
		s.proved.serve(w, r, s.WebhookMux())
	case s.options.Unproved != nil && s.options.Unproved(r.Context()):
		s.unproved.serve(w, r, s.WebhookMux())
	default:
		refuse(w, http.StatusUnauthorized, "only the hub's API server may ask, and has to prove that it is that")
	}
}

// serveAggregated answers what came through the hub's API server, which is where its
// users can ask too: only what it asks by itself is a review.
func (s *Server) serveAggregated(w http.ResponseWriter, r *http.Request) {
	caller := proved(s.frontProxy, r)
	path, review := strings.CutPrefix(r.URL.Path, AggregatedPath(""))
	switch {
	case caller == nil:
		refuse(w, http.StatusUnauthorized, "only the hub's API server may ask, and has to prove that it is that")
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

// refuse answers without reading the body, and has the connection closed: what is left
// of the body would have to be read before the next request.
func refuse(w http.ResponseWriter, code int, why string) {
	w.Header().Set("Connection", "close")
	http.Error(w, why, code)
}
