// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faults is a way to an API server on which requests fail as a suite requests: answers
// come late, requests are refused, watches end. It ends TLS with an authority of its own, so
// that it is another URL and another CA of the same API server, too.
package faults

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Faults are what goes wrong. The zero value is nothing.
type Faults struct {
	// Delay is how late every request comes to the API server.
	Delay time.Duration
	// RefuseEvery refuses each request whose number it divides, with 503 as an API server does
	// that is about to end. Zero refuses none.
	RefuseEvery int64
	// NoUpgrades rejects requests for other protocols than HTTP, like proxies without a rule for
	// upgrades do.
	NoUpgrades bool
	// WatchesLast ends each watch after that time. Zero lets them be.
	WatchesLast time.Duration
}

// Proxy is the way. Make it with Start.
type Proxy struct {
	// URL leads to the API server, CA (PEM) verifies that.
	URL string
	CA  []byte

	server *httptest.Server
	pass   *httputil.ReverseProxy
	faults atomic.Pointer[Faults]
	// asked and refused count requests.
	asked, refused atomic.Int64
}

// Start makes a way to the API server of a configuration. Who comes that way is, to the API
// server, who the configuration says if that has a client certificate, and else who the
// request says.
func Start(config *rest.Config) (*Proxy, error) {
	only := rest.CopyConfig(config)
	only.NextProtos = []string{"http/1.1"} // upgrades pass, too
	transport, err := rest.TransportFor(only)
	if err != nil {
		return nil, fmt.Errorf("making a way to %s: %w", config.Host, err)
	}
	hub, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("making a way to %s: %w", config.Host, err)
	}
	p := &Proxy{pass: &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(hub); r.Out.Host = hub.Host },
	}}
	p.Set(Faults{})
	p.server = httptest.NewTLSServer(http.HandlerFunc(p.serve))
	p.URL = p.server.URL
	p.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	return p, nil
}

// Set has this go wrong from now on, and nothing else.
func (p *Proxy) Set(f Faults) { p.faults.Store(&f) }

// Refused is how many requests were refused, of how many.
func (p *Proxy) Refused() (refused, of int64) { return p.refused.Load(), p.asked.Load() }

// Close stops the proxy and ends all its connections.
func (p *Proxy) Close() {
	p.server.CloseClientConnections()
	p.server.Close()
}

// Kubeconfig writes one that leads this way without a credential of its own.
func (p *Proxy) Kubeconfig(path string) error {
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"way": {Server: p.URL, CertificateAuthorityData: p.CA}},
		Contexts:       map[string]*clientcmdapi.Context{"way": {Cluster: "way"}},
		CurrentContext: "way",
	}, path)
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	f := p.faults.Load()
	number := p.asked.Add(1)
	if f.Delay > 0 {
		select {
		case <-r.Context().Done():
			return
		case <-time.After(f.Delay):
		}
	}
	if f.RefuseEvery > 0 && number%f.RefuseEvery == 0 {
		p.refused.Add(1)
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the API server is shutting down", http.StatusServiceUnavailable)
		return
	}
	if f.NoUpgrades && r.Header.Get("Upgrade") != "" {
		http.Error(w, "no upgrades here", http.StatusForbidden)
		return
	}
	if f.WatchesLast > 0 && r.URL.Query().Get("watch") != "" {
		ctx, end := context.WithTimeout(r.Context(), f.WatchesLast)
		defer end()
		r = r.WithContext(ctx)
	}
	p.pass.ServeHTTP(w, r)
}
