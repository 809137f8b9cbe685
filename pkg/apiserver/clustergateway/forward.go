// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"errors"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/klog/v2"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// exchange is one request to a member in flight.
type exchange struct {
	request *Request
	// rights are the permissions that admitted the request.
	rights
	// cookies are the caller's cookies for a page of the member, at the member's own host.
	cookies []string
	// ended is why the gateway or the caller ended a long-running request; nil if it ended by
	// itself.
	ended error
	// cut is why the gateway ended the reply in its middle: errSlowReader or errUnresponsive.
	cut atomic.Pointer[error]
	// written counts the reply.
	written *CountedWriter
}

type exchangeKey struct{}

func exchangeFrom(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

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
	defer reply.end(ctx, x)
	proxy := h.replies
	switch {
	case passesBody(ctx):
		proxy = h.passed
	case x.request.isWatch():
		proxy = h.watches
	}
	proxy.ServeHTTP(reply, r.WithContext(context.WithValue(ctx, exchangeKey{}, x)))
}

// ensureGranted waits until the agent lets the gateway impersonate the caller.
func (h *Handler) ensureGranted(ctx context.Context, x *exchange) error {
	if x.ownAccount {
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

// rewrite runs after the headers that Connection nominates are gone, so that no caller can have
// ours removed.
func (h *Handler) rewrite(pr *httputil.ProxyRequest) {
	x := exchangeFrom(pr.In.Context())
	request := x.request
	if !atEndpoint(pr.In.Context()) && request.isForProxyRoot(pr.In.Method) {
		request = request.toProxyRoot()
	}
	to := request.URL()
	to.Scheme, to.Host = "https", h.config.MemberServerName
	pr.Out.URL, pr.Out.Host = to, to.Host
	pr.Out.Trailer = nil
	if request.isPage() && atMemberHost(pr.In.Context()) {
		x.cookies = pr.In.Header["Cookie"]
	}
	stripIdentity(pr.Out.Header)
	if !x.ownAccount {
		setIdentity(pr.Out.Header, x.as)
	}
	if id := auditID(pr.In.Context()); id != "" {
		pr.Out.Header.Set("Audit-Id", id)
	}
	h.spans.continueIn(pr.In.Context(), pr.Out.Header)
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func roundTrip(out *http.Request) (*http.Response, error) {
	x := exchangeFrom(out.Context())
	if x == nil || (x.as.User == "") != x.ownAccount {
		return nil, errors.New("the request has no identity")
	}
	if err := checkIdentity(out.Header, x.as); err != nil {
		return nil, err
	}
	if x.cookies != nil {
		out.Header["Cookie"] = x.cookies
	}
	if err := keepBody(out); err != nil {
		return nil, err
	}
	res, err := x.send(out)
	if err != nil {
		return nil, err
	}
	// The transport writes the member's trailers into its own response when the body ends, so the
	// caller gets a copy without them.
	withoutTrailers := *res
	withoutTrailers.Trailer = nil
	return &withoutTrailers, nil
}

// fail writes the response for a request without a reply of the member.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	ctx := r.Context()
	x := exchangeFrom(ctx)
	failure := h.failureOf(ctx, x.request, err)
	klog.FromContext(ctx).V(4).Info("Request did not reach its member", "member", x.request.Member, "reason", untrusted.Excerpt(failure.Error(), 512))
	h.refuse(w, r, failure)
}

func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, errClientGone) {
		// 499 is what proxies use for this. Only the metrics see it.
		w.WriteHeader(499)
		return
	}
	if p, ok := parsedFrom(r.Context()); ok && inText(p.request, err) {
		http.Error(w, err.Error(), int(responsewriters.ErrorToAPIStatus(err).Code))
		return
	}
	responsewriters.RespondWithError(w, r, err, h.serializer)
}

// inText is true for refusals of the requests with which kubectl and client-go begin. These clients
// decode only the type that they requested. Of a refusal with a Status they show "unknown" or a
// sentence of their own, but they show plain text as it is.
func inText(request *Request, err error) bool {
	noReply := responsewriters.ErrorToAPIStatus(err).Code == http.StatusBadGateway
	return isDiscovery(request) && (apierrors.IsForbidden(err) || noReply) || apierrors.ReasonForError(err) == reasonUnreachable
}

func isDiscovery(request *Request) bool {
	return request != nil && (request.Path == "/api" || request.Path == "/apis")
}

// describesMember is true for discovery and other requests about a server as a whole.
func describesMember(request *Request) bool {
	return isDiscovery(request) || request.Path == "/version" || strings.HasPrefix(request.Path, "/openapi/")
}

// bufferPool keeps buffers of one size between responses.
type bufferPool struct {
	size int
	pool sync.Pool
}

func (p *bufferPool) Get() []byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, p.size)
}

func (p *bufferPool) Put(b []byte) { p.pool.Put(&b) }
