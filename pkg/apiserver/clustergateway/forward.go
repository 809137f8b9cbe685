// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
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
	link    *link
	// as is whom the member is to see. It is empty if own is true: then it is the
	// gateway's own account.
	as  Impersonation
	own bool
	// caller is who asked, as the hub knows them.
	caller string
}

type exchangeKey struct{}

func exchangeFrom(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// forward sends an admitted request on.
func (h *Handler) forward(w http.ResponseWriter, r *http.Request, x *exchange) {
	if !x.request.LongRunning {
		if !h.inFlightUser.begin(x.caller) {
			h.refuse(w, r, tooMany(x.request.Member, fmt.Sprintf(
				"the gateway has %d requests of this user under way: ask again", h.inFlightUser.most)))
			return
		}
		defer h.inFlightUser.end(x.caller)
		if !h.inFlight.begin(x.request.Member) {
			h.refuse(w, r, tooMany(x.request.Member, fmt.Sprintf(
				"the gateway has %d requests for member %q under way: ask again", h.inFlight.most, x.request.Member)))
			return
		}
		defer h.inFlight.end(x.request.Member)
	}
	ctx, cancel := h.contextFor(r.Context(), x)
	defer cancel()
	if err := h.ensureGranted(ctx, x); err != nil {
		h.refuse(w, r, err)
		return
	}
	defer leaveQuietly(ctx)
	proxy := h.replies
	if x.request.isWatch() {
		proxy = h.watches
	}
	proxy.ServeHTTP(w, r.WithContext(context.WithValue(ctx, exchangeKey{}, x)))
}

// leaveQuietly ends the panic with which a reverse proxy gives a reply up, if the
// caller has gone: every watch ends that way and nobody needs a line in the log for
// it. A caller who is there must see that the reply was cut.
func leaveQuietly(ctx context.Context) {
	v := recover()
	if v == nil || v == http.ErrAbortHandler && errors.Is(context.Cause(ctx), context.Canceled) {
		return
	}
	panic(v)
}

// ensureGranted returns when the agent lets the gateway act as the caller.
func (h *Handler) ensureGranted(ctx context.Context, x *exchange) error {
	if x.own {
		return nil
	}
	refusal, err := x.link.grants.ensure(ctx, x.as)
	if err != nil {
		return failureOf(ctx, x.request.Member, err, h.notConnected)
	}
	if refusal != "" {
		return apierrors.NewForbidden(proxyResource, x.request.Member, fmt.Errorf(
			"the agent of the member does not let the gateway act as user %q: %s", x.as.User, refusal))
	}
	return nil
}

// contextFor ends long requests when the server stops: watches at once, since their
// callers go on with another replica, the others as late as possible.
func (h *Handler) contextFor(ctx context.Context, x *exchange) (context.Context, func()) {
	switch {
	case !x.request.LongRunning:
		return ctx, func() {}
	case x.request.isWatch():
		return h.watching.begin(ctx)
	}
	return h.streaming.begin(ctx)
}

// lasting knows the requests of a kind that may last, to end them all at once.
type lasting struct {
	// mu guards the rest.
	mu      sync.Mutex
	stopped bool
	cancels map[*context.CancelCauseFunc]struct{}
	// ended is closed when the last request ends; nil while nobody waits for it.
	ended chan struct{}
}

func (l *lasting) begin(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		cancel(errStopping)
		return ctx, func() {}
	}
	if l.cancels == nil {
		l.cancels = map[*context.CancelCauseFunc]struct{}{}
	}
	l.cancels[&cancel] = struct{}{}
	return ctx, func() {
		cancel(nil)
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.cancels, &cancel)
		if l.ended != nil && len(l.cancels) == 0 {
			close(l.ended)
			l.ended = nil
		}
	}
}

// wait returns when no request is left, or ctx ends. One waits at a time.
func (l *lasting) wait(ctx context.Context) {
	l.mu.Lock()
	if len(l.cancels) == 0 {
		l.mu.Unlock()
		return
	}
	ended := make(chan struct{})
	l.ended = ended
	l.mu.Unlock()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// stop ends all requests, and every later one at its beginning.
func (l *lasting) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	for cancel := range l.cancels {
		(*cancel)(errStopping)
	}
}

// rewrite runs after the headers that Connection nominates are gone, so that no
// caller can have ours removed.
func (h *Handler) rewrite(pr *httputil.ProxyRequest) {
	x := exchangeFrom(pr.In.Context())
	to := x.request.URL()
	to.Scheme, to.Host = "https", h.serverName
	pr.Out.URL, pr.Out.Host = to, h.serverName
	pr.Out.Trailer = nil
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
	res, err := x.link.send(out, x.request.Upgrade)
	if err != nil {
		return nil, err
	}
	// The transport writes the member's trailers into its own when the body ends.
	withoutTrailers := *res
	withoutTrailers.Trailer = nil
	return &withoutTrailers, nil
}

// repliesOfOurs are headers that the gateway writes itself, or that a member
// must not set for the hub's origin.
var repliesOfOurs = []string{
	"Audit-Id", "Cache-Control", "Set-Cookie", "Www-Authenticate", "Alt-Svc", "Strict-Transport-Security",
	"X-Kubernetes-Pf-Flowschema-Uid", "X-Kubernetes-Pf-Prioritylevel-Uid",
}

// checkReply refuses a redirect and a reply that says that the gateway itself is
// not known, and removes headers by which a member would act on the hub's
// origin.
func checkReply(res *http.Response) error {
	x := exchangeFrom(res.Request.Context())
	if redirects(res) {
		return badGateway(x.request.Member, fmt.Sprintf("member %q answered with a redirect, which is not followed", x.request.Member))
	}
	if res.StatusCode == http.StatusUnauthorized && x.request.Info.Subresource != "proxy" {
		return unavailable(x.request.Member, fmt.Sprintf("member %q does not accept the gateway's token", x.request.Member))
	}
	for _, name := range repliesOfOurs {
		res.Header.Del(name)
	}
	for name := range res.Header {
		if strings.HasPrefix(name, "Access-Control-") {
			res.Header.Del(name)
		}
	}
	res.Header.Set("X-Content-Type-Options", "nosniff")
	if strings.Contains(strings.ToLower(res.Header.Get("Content-Type")), "html") {
		res.Header.Set("Content-Security-Policy", "sandbox")
	}
	return nil
}

func redirects(res *http.Response) bool {
	switch res.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return res.StatusCode >= 300 && res.StatusCode < 400 && res.Header.Get("Location") != ""
}

// fail answers for a member that did not.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	ctx := r.Context()
	x := exchangeFrom(ctx)
	failure := failureOf(ctx, x.request.Member, err, h.notConnected)
	klog.FromContext(ctx).V(4).Info("Request did not reach its member", "member", x.request.Member, "reason", printable(failure.Error(), 512))
	h.refuse(w, r, failure)
}

func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, errClientGone) {
		// 499, as proxies say; nobody reads it but the metrics.
		w.WriteHeader(499)
		return
	}
	if p, ok := parsedFrom(r.Context()); ok && apierrors.IsForbidden(err) && isDiscovery(p.request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	responsewriters.RespondWithError(w, r, err, h.serializer)
}

// isDiscovery is true for the requests with which kubectl and client-go begin.
// They decode nothing but what they asked for: of a 403 with a Status they tell
// their user "unknown", of one in plain text they tell the text.
func isDiscovery(request *Request) bool {
	return request != nil && (request.Path == "/api" || request.Path == "/apis")
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
