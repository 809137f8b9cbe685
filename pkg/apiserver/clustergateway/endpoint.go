// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"net/http"
	"strings"
)

// EndpointPrefix begins the path of a member at the gateway's own endpoint, for
// clients that spare the hub's API server the traffic.
const EndpointPrefix = "/clusters/"

// WithEndpoint lets /clusters/<member>/<path> mean what the path of the member's
// ClusterGateway means: all that follows, who may do what and what is refused,
// is the same. It comes before everything that reads a path.
func WithEndpoint(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, ok := behindEndpoint(r.URL.Path)
		raw, rawOK := behindEndpoint(r.URL.EscapedPath())
		if !ok || !rawOK {
			next.ServeHTTP(w, r)
			return
		}
		// The caller's request stays as it is: whoever logs it keeps its path.
		inner := r.WithContext(context.WithValue(r.Context(), endpointKey{}, true))
		url := *r.URL
		url.Path, url.RawPath = path, raw
		inner.URL, inner.RequestURI = &url, url.RequestURI()
		next.ServeHTTP(w, inner)
	})
}

type endpointKey struct{}

// atEndpoint is true if the request did not come through the hub's API server.
func atEndpoint(ctx context.Context) bool { return ctx.Value(endpointKey{}) != nil }

// behindEndpoint is the path of the ClusterGateway that an endpoint's path means.
func behindEndpoint(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, EndpointPrefix)
	if !ok {
		return "", false
	}
	member, inner, more := strings.Cut(rest, "/")
	if member == "" {
		return "", false
	}
	path = ProxyPathPrefix + member + "/proxy"
	if more {
		path += "/" + inner
	}
	return path, true
}
