// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
	"fleetgate.io/fleetgate/pkg/apiserver/paths"
)

// request is one request for a view, parsed once from the caller's request.
type request struct {
	// view is the view as it is spelled in the path, and as the hub authorizes it.
	view string
	// url is the path and the query that members get; info is how members parse it.
	url  *url.URL
	info *apirequest.RequestInfo
	// upgrade is true if the caller wants to switch protocols.
	upgrade, longRunning bool
}

// parse returns nil without an error for a request that is not for a view. It returns an error if
// two readers could understand the path differently.
func parse(r *http.Request) (*request, error) {
	rest, ok := strings.CutPrefix(r.URL.Path, paths.View)
	if !ok {
		return nil, nil
	}
	view, tail, _ := strings.Cut(rest, "/")
	inner, ok := strings.CutPrefix(tail, gatewayv1alpha1.SubresourceProxy)
	if view == "" || !ok || inner != "" && inner[0] != '/' {
		return nil, nil
	}
	raw, ok := strings.CutPrefix(r.URL.EscapedPath(), paths.View)
	if !ok {
		return nil, fmt.Errorf("the path must begin with %q without percent-encoding", paths.View)
	}
	rawView, rawTail, _ := strings.Cut(raw, "/")
	rawInner, ok := strings.CutPrefix(rawTail, gatewayv1alpha1.SubresourceProxy)
	if plain, err := url.PathUnescape(rawView); err != nil || plain != view || !ok {
		return nil, errors.New("the name of the view contains a separator")
	}
	// The parser of single members' requests finds everything that is needed here.
	const of = paths.Member + "member/proxy"
	one, err := clustergateway.Parse(&http.Request{
		Method: r.Method, Header: r.Header, URL: &url.URL{Path: of + inner, RawPath: of + rawInner, RawQuery: r.URL.RawQuery},
	})
	if err != nil {
		return nil, err
	}
	return &request{view: view, url: one.URL(), info: one.Info, upgrade: one.Upgrade, longRunning: one.LongRunning}, nil
}

type parsedKey struct{}

type parsed struct {
	request *request
	err     error
}

// WithParsed parses a request for a view before any other handler sees it and stores the result in
// its context. It refuses nothing, because an unauthenticated caller must not learn the reason. It
// first translates a path of the gateway's own endpoint to the hub's path.
func WithParsed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = behindEndpoint(r)
		of, err := parse(r)
		if of != nil || err != nil {
			r = r.WithContext(context.WithValue(r.Context(), parsedKey{}, parsed{request: of, err: err}))
		}
		next.ServeHTTP(w, r)
	})
}

// behindEndpoint returns the request with the hub's path for an endpoint's path.
func behindEndpoint(r *http.Request) *http.Request {
	if !strings.HasPrefix(r.URL.Path, paths.ViewEndpoint) || !strings.HasPrefix(r.URL.EscapedPath(), paths.ViewEndpoint) {
		return r
	}
	hubPath := func(path string) string {
		view, inner, more := strings.Cut(strings.TrimPrefix(path, paths.ViewEndpoint), "/")
		path = paths.View + view + "/" + gatewayv1alpha1.SubresourceProxy
		if more {
			path += "/" + inner
		}
		return path
	}
	inner := r.WithContext(r.Context())
	to := *r.URL
	to.Path, to.RawPath = hubPath(r.URL.Path), hubPath(r.URL.EscapedPath())
	inner.URL, inner.RequestURI = &to, to.RequestURI()
	return inner
}

func parsedFrom(ctx context.Context) (parsed, bool) {
	p, ok := ctx.Value(parsedKey{}).(parsed)
	return p, ok
}

// LongRunning says whether the context's request for a view has no time limit: watches and similar
// requests, and lists. A list of many members may take long, and ends when it makes no progress. isView
// is false if the request is not for a view.
func LongRunning(ctx context.Context) (longRunning, isView bool) {
	p, ok := parsedFrom(ctx)
	return ok && p.request != nil && (p.request.longRunning || p.request.info.Verb == "list"), ok
}

// Handles is true for a request that the hub has authorized for the subresource proxy of a view.
// The authorized request must equal the parsed one.
func Handles(r *http.Request) bool {
	name, ok := clustergateway.ProxyOf(r, viewv1alpha1.Resource)
	if !ok {
		return false
	}
	p, ok := parsedFrom(r.Context())
	return ok && (p.err != nil || p.request.view == name)
}
