// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver/paths"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// A request for several members (package fleetview) becomes one request per member, which is
// handled like one that the caller sends directly: same identity, grants, inner authorization,
// member limits, records and reviews. There are two differences. Package fleetview has already
// authorized the caller for the member on the hub. And the request counts once for its user,
// for any number of members.

type fannedKey struct{}

// fannedFrom is the view through which a member is read, or empty.
func fannedFrom(ctx context.Context) string {
	view, _ := ctx.Value(fannedKey{}).(string)
	return view
}

type narrowKey struct{}

// WithNarrowWindow limits how much unread data of a reply the gateway buffers. When a thousand
// members reply to the same request, each could have megabytes to send before its reply is read.
func WithNarrowWindow(ctx context.Context) context.Context {
	return context.WithValue(ctx, narrowKey{}, true)
}

func isNarrow(ctx context.Context) bool { return ctx.Value(narrowKey{}) != nil }

type bodyKey struct{}

// WithBody makes the gateway pass the body of a successful reply to take, before it writes the status
// line, instead of copying the body to the response writer. The request ends when the body has returned
// an error, such as io.EOF, or with its context.
func WithBody(ctx context.Context, take func(io.Reader)) context.Context {
	return context.WithValue(ctx, bodyKey{}, take)
}

func passesBody(ctx context.Context) bool { return ctx.Value(bodyKey{}) != nil }

// passBody passes the body of a reply to the function of WithBody.
func passBody(res *http.Response) {
	ctx := res.Request.Context()
	take, ok := ctx.Value(bodyKey{}).(func(io.Reader))
	if !ok || res.StatusCode != http.StatusOK && res.StatusCode != http.StatusCreated {
		return
	}
	passed := &passedBody{body: res.Body, written: exchangeFrom(ctx).written, ended: make(chan struct{})}
	res.Body = &awaitedBody{Closer: res.Body, ctx: ctx, passed: passed}
	take(passed)
}

// passedBody is the body of a reply for its reader.
type passedBody struct {
	body io.Reader
	// written counts what is read as written to the caller.
	written *CountedWriter
	once    sync.Once
	// ended is closed once err is set.
	ended chan struct{}
	err   error
}

func (b *passedBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	b.written.bytes.Add(int64(n))
	if err != nil {
		b.once.Do(func() {
			b.err = err
			close(b.ended)
		})
	}
	return n, err
}

// awaitedBody is the same for the reverse proxy: it is empty, and ends with the body of the reader.
type awaitedBody struct {
	io.Closer
	//nolint:containedctx // A body has its request's context.
	ctx    context.Context
	passed *passedBody
}

func (b *awaitedBody) Read([]byte) (int, error) {
	select {
	case <-b.passed.ended:
		return 0, b.passed.err
	case <-b.ctx.Done():
		return 0, context.Cause(b.ctx)
	}
}

// ServeMember forwards the request r of a view to one of its members. Path, RawPath and query are
// what the member gets. The caller of r must be authorized for the member (ProxyAttributes) and
// counted (EnterUser).
func (h *Handler) ServeMember(w http.ResponseWriter, r *http.Request, view, member string, inner *url.URL) {
	prefix := paths.Member + member + "/proxy"
	path := &url.URL{Path: prefix + inner.Path, RawPath: prefix + inner.EscapedPath(), RawQuery: inner.RawQuery}
	ctx := context.WithValue(r.Context(), fannedKey{}, view)
	ctx = apirequest.WithRequestInfo(ctx, &apirequest.RequestInfo{
		IsResourceRequest: true, Path: path.Path, Verb: outerVerb(r.Method), APIPrefix: "apis",
		APIGroup: gatewayv1alpha1.GroupName, APIVersion: gatewayv1alpha1.GroupVersion.Version,
		Resource: gatewayv1alpha1.Resource, Subresource: gatewayv1alpha1.SubresourceProxy, Name: member,
	})
	single := r.Clone(ctx)
	single.URL, single.RequestURI = path, path.RequestURI()
	request, err := Parse(single)
	ctx = context.WithValue(ctx, parsedKey{}, parsed{request: request, err: err})
	h.ServeHTTP(w, single.WithContext(ctx))
}

func outerVerb(method string) string {
	if method == http.MethodPost {
		return "create"
	}
	return "get"
}

// ProxyAttributes returns the access that the hub authorizes before a caller reaches a member through
// a view. The verb is always that of reading, even if the method is POST, as for a review of the
// caller's own permissions. An empty member means all members.
func ProxyAttributes(of authorizer.Attributes, member string) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{
		User: of.GetUser(), Verb: "get", Name: member, ResourceRequest: true,
		APIGroup: gatewayv1alpha1.GroupName, APIVersion: gatewayv1alpha1.GroupVersion.Version,
		Resource: gatewayv1alpha1.Resource, Subresource: gatewayv1alpha1.SubresourceProxy,
	}
}

// EnterUser counts a request of a user for a view as one, until leave is called. It fails if the
// user has too many requests in flight.
func (h *Handler) EnterUser(user, view string, longRunning bool) (leave func(), err error) {
	of := h.short
	if longRunning {
		of = h.long
	}
	if of.perUser.begin(user) {
		return func() { of.perUser.end(user) }, nil
	}
	status := tooMany(view, of.tooManyOfUser())
	status.ErrStatus.Details.Kind = "fleetviews"
	return nil, status
}

// Record records a request for a view, in addition to the records of its requests to members.
func (h *Handler) Record(r *http.Request, view string, info *apirequest.RequestInfo, path string, code int, bytes int64, began time.Time) {
	record := newRecord(r, &Request{Info: info, Path: path}, began)
	record.View, record.Code, record.Bytes, record.Took = untrusted.Excerpt(view, maxRecorded), code, bytes, time.Since(began)
	h.config.Recorder(r.Context(), record)
}
