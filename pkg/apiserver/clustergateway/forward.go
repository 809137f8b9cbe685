// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/klog/v2"
)

// exchange is one request on its way to a member.
type exchange struct {
	request *Request
	route   *route
	// as is whom the member is to see. It is empty if own is true: then it is the
	// gateway's own account.
	as  Impersonation
	own bool
	// caller is who asked, as the hub knows them.
	caller string
	// fanned is true if the request is part of one for several members, which was counted
	// for its user.
	fanned bool
	// rights are what let the request in.
	rights rights
	// cookies are those for a page of the member, at a host that is the member's alone.
	cookies []string
	// ended is why the gateway ended a request that lasts, or why its caller did; nil
	// if it came to its own end.
	ended error
}

type exchangeKey struct{}

func exchangeFrom(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// forward sends an admitted request on.
func (h *Handler) forward(w http.ResponseWriter, r *http.Request, x *exchange) {
	leave, err := h.limitsOf(x.request).enter(x)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	defer leave()
	ctx, cancel := h.contextFor(r.Context(), x)
	defer cancel()
	if err := h.ensureGranted(ctx, x); err != nil {
		h.refuse(w, r, err)
		return
	}
	reply := &cutReply{ResponseWriter: w}
	defer reply.end(ctx, x.request)
	proxy := h.replies
	if x.request.isWatch() {
		proxy = h.watches
	}
	proxy.ServeHTTP(reply, r.WithContext(context.WithValue(ctx, exchangeKey{}, x)))
}

// ensureGranted returns when the agent lets the gateway act as the caller.
func (h *Handler) ensureGranted(ctx context.Context, x *exchange) error {
	if x.own {
		return nil
	}
	refusal, err := x.route.grants.ensure(ctx, x.as)
	if err != nil {
		return h.failureOf(ctx, x.request, err)
	}
	if refusal != "" {
		return x.refused(refusal)
	}
	return nil
}

// rewrite runs after the headers that Connection nominates are gone, so that no
// caller can have ours removed.
func (h *Handler) rewrite(pr *httputil.ProxyRequest) {
	x := exchangeFrom(pr.In.Context())
	request := x.request
	if !atEndpoint(pr.In.Context()) && request.asksForProxyRoot(pr.In.Method) {
		request = request.toProxyRoot()
	}
	to := request.URL()
	to.Scheme, to.Host = "https", h.serverName
	pr.Out.URL, pr.Out.Host = to, h.serverName
	pr.Out.Trailer = nil
	if request.isPage() && atMemberHost(pr.In.Context()) {
		x.cookies = pr.In.Header["Cookie"]
	}
	stripIdentity(pr.Out.Header)
	if !x.own {
		setIdentity(pr.Out.Header, x.as)
	}
	if id := auditID(pr.In.Context()); id != "" {
		pr.Out.Header.Set("Audit-Id", id)
	}
	h.spans.continueIn(pr.In.Context(), pr.Out.Header)
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

// RoundTrip calls f.
func (f roundTripperFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func roundTrip(out *http.Request) (*http.Response, error) {
	x := exchangeFrom(out.Context())
	if x == nil || (x.as.User == "") != x.own {
		return nil, errors.New("the request has no identity")
	}
	if err := checkIdentity(out.Header, x.as); err != nil {
		return nil, err
	}
	if x.cookies != nil {
		out.Header["Cookie"] = x.cookies
	}
	res, err := x.send(out)
	if err != nil {
		return nil, err
	}
	// The transport writes the member's trailers into its own when the body ends.
	withoutTrailers := *res
	withoutTrailers.Trailer = nil
	return &withoutTrailers, nil
}

// fail answers for a member that did not.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	ctx := r.Context()
	x := exchangeFrom(ctx)
	failure := h.failureOf(ctx, x.request, err)
	klog.FromContext(ctx).V(4).Info("Request did not reach its member", "member", x.request.Member, "reason", printable(failure.Error(), 512))
	h.refuse(w, r, failure)
}

func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, errClientGone) {
		// 499, as proxies say; nobody reads it but the metrics.
		w.WriteHeader(499)
		return
	}
	if p, ok := parsedFrom(r.Context()); ok && inText(p.request, err) {
		http.Error(w, err.Error(), int(responsewriters.ErrorToAPIStatus(err).Code))
		return
	}
	responsewriters.RespondWithError(w, r, err, h.serializer)
}

// inText is true for refusals of the requests with which kubectl and client-go begin.
// They decode nothing but what they asked for: of a refusal with a Status they tell
// their user "unknown", or a sentence of their own, of one in plain text they tell the
// text.
func inText(request *Request, err error) bool {
	return apierrors.IsForbidden(err) && isDiscovery(request) || apierrors.ReasonForError(err) == reasonAway
}

func isDiscovery(request *Request) bool {
	return request != nil && (request.Path == "/api" || request.Path == "/apis")
}

// describesMember is true for what clients ask about a server as a whole, discovery and more.
func describesMember(request *Request) bool {
	return isDiscovery(request) || request.Path == "/version" || strings.HasPrefix(request.Path, "/openapi/")
}

// countedWriter remembers the code and counts the bytes. Everything else of the
// writer below is reached by Unwrap.
type countedWriter struct {
	http.ResponseWriter
	code  int
	bytes atomic.Int64
}

// WriteHeader remembers the first code that is final.
func (w *countedWriter) WriteHeader(code int) {
	if w.code == 0 && (code >= 200 || code == http.StatusSwitchingProtocols) {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

// Write counts.
func (w *countedWriter) Write(b []byte) (int, error) {
	if w.code == 0 {
		w.code = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes.Add(int64(n))
	return n, err
}

// Hijack counts what is written to the connection afterwards.
func (w *countedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	return &countedConn{Conn: conn, bytes: &w.bytes}, buffered, nil
}

type countedConn struct {
	net.Conn
	bytes *atomic.Int64
}

// Write counts.
func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.bytes.Add(int64(n))
	return n, err
}

// Unwrap lets http.ResponseController flush.
func (w *countedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// status is the code: a hijacked connection has switched protocols without
// saying so here.
func (w *countedWriter) status() int {
	if w.code == 0 {
		return http.StatusSwitchingProtocols
	}
	return w.code
}

// bufferPool keeps buffers of one size between responses.
type bufferPool struct {
	size int
	pool sync.Pool
}

// Get returns a buffer.
func (p *bufferPool) Get() []byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, p.size)
}

// Put takes a buffer back.
func (p *bufferPool) Put(b []byte) { p.pool.Put(&b) }
