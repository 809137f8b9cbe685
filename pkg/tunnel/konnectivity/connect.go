// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"fleetgate.io/fleetgate/pkg/tunnel"
)

// connect serves HTTP CONNECT: `CONNECT host:port HTTP/1.1`, answered with 200 once the member has
// the connection, or with a status and the reason of the refusal.
func (f *FrontendServer) connect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		w.Header().Set("Allow", http.MethodConnect)
		refuse(w, http.StatusMethodNotAllowed, "only CONNECT is served here")
		return
	}
	id, ok, err := f.identifyRequest(r)
	switch {
	case err != nil:
		f.options.Metrics.refused.WithLabelValues("frontends", "review").Inc()
		unavailable(w, "the gateway cannot determine the caller")
		return
	case !ok:
		f.options.Metrics.refused.WithLabelValues("frontends", "Unauthenticated").Inc()
		w.Header().Set("Proxy-Authenticate", "Bearer")
		refuse(w, http.StatusProxyAuthRequired, "no credential that is good at this listener")
		return
	}
	if !f.take() {
		unavailable(w, "too many connections of frontends are open")
		return
	}
	defer f.release()
	conn, refusal := f.dial(r.Context(), id, r.TLS.ServerName, protocolTCP, r.Host)
	if refusal != nil {
		if refusal.status == http.StatusServiceUnavailable {
			unavailable(w, refusal.Error())
			return
		}
		refuse(w, refusal.status, refusal.Error())
		return
	}
	defer conn.Close()
	f.options.Metrics.httpConnections.Inc()
	defer f.options.Metrics.httpConnections.Dec()
	f.tunnel(r.Context(), w, conn)
}

func unavailable(w http.ResponseWriter, message string) {
	w.Header().Set("Retry-After", strconv.Itoa(1))
	refuse(w, http.StatusServiceUnavailable, message)
}

// refuse answers with a status line that contains the reason: API servers and most other clients of
// a proxy show their users only that line.
func refuse(w http.ResponseWriter, code int, reason string) {
	reason = printable(reason)
	header := w.Header().Clone()
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, reason, code)
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(responseTimeout))
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("X-Content-Type-Options", "nosniff")
	response := http.Response{
		ProtoMajor: 1, ProtoMinor: 1, StatusCode: code, Status: strconv.Itoa(code) + " " + reason,
		Header: header, Close: true, ContentLength: int64(len(reason)) + 1, Body: io.NopCloser(strings.NewReader(reason + "\n")),
	}
	_ = response.Write(conn) // A client that has disconnected gets nothing.
}

// identifyRequest accepts a token as a proxy's credential or, from clients that cannot send one, as
// an ordinary one.
func (f *FrontendServer) identifyRequest(r *http.Request) (Identity, bool, error) {
	authorization := r.Header.Values("Proxy-Authorization")
	if len(authorization) == 0 {
		authorization = r.Header.Values("Authorization")
	}
	return f.options.Credentials.identify(r.Context(), *r.TLS, authorization)
}

// responseTimeout limits the writing of the response.
const responseTimeout = 10 * time.Second

// tunnel takes over the frontend's connection and pipes. The context of a hijacked request does not
// end with the frontend, but the pipe does.
func (f *FrontendServer) tunnel(ctx context.Context, w http.ResponseWriter, conn net.Conn) {
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "this connection cannot be taken over", http.StatusInternalServerError)
		return
	}
	defer client.Close()
	_ = client.SetDeadline(time.Now().Add(responseTimeout))
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	_ = client.SetDeadline(time.Time{})
	// A frontend that did not wait for the response may have sent more.
	ahead, _ := buffered.Reader.Peek(buffered.Reader.Buffered())
	if _, err := conn.Write(ahead); err != nil {
		return
	}
	handle, err := tunnel.Dial(func(context.Context) (net.Conn, error) { return conn, nil })(ctx)
	if err != nil {
		return
	}
	if err := handle(ctx, client); err != nil {
		klog.FromContext(ctx).V(4).Info("Konnectivity frontend's connection ended early", "reason", err.Error())
	}
}
