// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package forwardproxy is the forward proxy of a network that lets nothing else out, for tests: it
// answers CONNECT and carries bytes, so that it sees addresses alone.
package forwardproxy

import (
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
)

// Proxy is one that runs, at URL.
type Proxy struct {
	*httptest.Server
	mu    sync.Mutex // guards asked
	asked []string
}

// Start starts one that is reached by http or, secured, by https. The caller closes it.
func Start(secured bool) *Proxy {
	p := &Proxy{}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
	if secured {
		p.StartTLS()
	} else {
		p.Server.Start()
	}
	return p
}

// CA verifies a secured proxy, in PEM; it is empty for others.
func (p *Proxy) CA() []byte {
	if p.Certificate() == nil {
		return nil
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw})
}

// Asked are all requests so far, as "CONNECT host:port".
func (p *Proxy) Asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

func (p *Proxy) serve(w http.ResponseWriter, request *http.Request) {
	p.mu.Lock()
	p.asked = append(p.asked, request.Method+" "+request.Host)
	p.mu.Unlock()
	if request.Method != http.MethodConnect {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	target, err := net.Dial("tcp", request.Host)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer func() { _ = target.Close() }()
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	done := make(chan struct{}, 2)
	for to, from := range map[io.Writer]io.Reader{target: buffered.Reader, conn: target} {
		go func() {
			_, _ = io.Copy(to, from)
			done <- struct{}{}
		}()
	}
	<-done
}
