// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
)

// A request for several members at once (package fleetview) becomes one for each of them,
// which goes the same way as one that its caller makes alone: the same identity, grants,
// inner authorization, limits of the member, records and reviews. What differs: whoever
// makes it has asked the hub for the way into the member, and it counts for its user once,
// however many members are asked.

type fannedKey struct{}

// fannedFrom is the view through which a member is asked, or empty.
func fannedFrom(ctx context.Context) string {
	view, _ := ctx.Value(fannedKey{}).(string)
	return view
}

type narrowKey struct{}

// WithNarrowWindow has the gateway hold little of a reply that waits to be read: of a thousand
// members that are asked the same, each may have megabytes to say before it is its turn.
func WithNarrowWindow(ctx context.Context) context.Context {
	return context.WithValue(ctx, narrowKey{}, true)
}

func isNarrow(ctx context.Context) bool { return ctx.Value(narrowKey{}) != nil }

// ServeMember forwards what r asks of a view to one of its members. Path, RawPath and query
// are what the member gets. The caller of r must have the right to the member's way in
// (Way), and be counted (EnterUser).
func (h *Handler) ServeMember(w http.ResponseWriter, r *http.Request, view, member string, inner *url.URL) {
	prefix := ProxyPathPrefix + member + "/proxy"
	path := &url.URL{Path: prefix + inner.Path, RawPath: prefix + inner.EscapedPath(), RawQuery: inner.RawQuery}
	ctx := context.WithValue(r.Context(), fannedKey{}, view)
	ctx = apirequest.WithRequestInfo(ctx, &apirequest.RequestInfo{
		IsResourceRequest: true, Path: path.Path, Verb: outerVerb(r.Method), APIPrefix: "apis",
		APIGroup: gatewayv1alpha1.GroupName, APIVersion: gatewayv1alpha1.GroupVersion.Version,
		Resource: gatewayv1alpha1.Resource, Subresource: gatewayv1alpha1.SubresourceProxy, Name: member,
	})
	asked := r.Clone(ctx)
	asked.URL, asked.RequestURI = path, path.RequestURI()
	request, err := Parse(asked)
	ctx = context.WithValue(ctx, parsedKey{}, parsed{request: request, err: err})
	h.ServeHTTP(w, asked.WithContext(ctx))
}

func outerVerb(method string) string {
	if method == http.MethodPost {
		return "create"
	}
	return "get"
}

// Way is what the hub is asked before a caller reaches a member through a view: reading
// is one right, whichever method a question about oneself has. An empty member is all.
func Way(of authorizer.Attributes, member string) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{
		User: of.GetUser(), Verb: "get", Name: member, ResourceRequest: true,
		APIGroup: gatewayv1alpha1.GroupName, APIVersion: gatewayv1alpha1.GroupVersion.Version,
		Resource: gatewayv1alpha1.Resource, Subresource: gatewayv1alpha1.SubresourceProxy,
	}
}

// EnterUser counts a request of a user for a view, as one, until leave is called, or says
// that they have too many under way.
func (h *Handler) EnterUser(user, view string, lasts bool) (leave func(), err error) {
	of := h.short
	if lasts {
		of = h.long
	}
	if of.perUser.begin(user) {
		return func() { of.perUser.end(user) }, nil
	}
	status := tooMany(view, of.tooManyOfUser())
	status.ErrStatus.Details.Kind = "fleetviews"
	return nil, status
}

// Record keeps the record of a request for a view, beside those of what its members were
// asked.
func (h *Handler) Record(r *http.Request, view string, info *apirequest.RequestInfo, path string, code int, bytes int64, began time.Time) {
	record := newRecord(r, &Request{Info: info, Path: path}, began)
	record.View, record.Code, record.Bytes, record.Took = Printable(view, maxRecorded), code, bytes, time.Since(began)
	h.record(r.Context(), record)
}
