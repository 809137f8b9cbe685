// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"net"
	"net/http"
	"strings"
)

// EndpointPrefix begins the path of a member at the gateway's own endpoint, for
// clients that spare the hub's API server the traffic.
const EndpointPrefix = "/clusters/"

// WithEndpoint lets /clusters/<member>/<path> mean what the path of the member's
// ClusterGateway means: all that follows, who may do what and what is refused,
// is the same. It comes before everything that reads a path. If memberDomain is not
// empty, <path> at host <member>.<memberDomain> means that too, for clients that have no
// room for a path in a server's address, and for cookies: a host is an origin of its own.
func WithEndpoint(next http.Handler, memberDomain string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind := anEndpoint
		path, ok := behindEndpoint(r.URL.Path)
		raw, rawOK := behindEndpoint(r.URL.EscapedPath())
		if member := memberOfHost(r.Host, memberDomain); member != "" {
			kind = aMemberHost
			path, raw, ok, rawOK = ProxyPathPrefix+member+"/proxy"+r.URL.Path, ProxyPathPrefix+member+"/proxy"+r.URL.EscapedPath(), true, true
		}
		if !ok || !rawOK {
			next.ServeHTTP(w, r)
			return
		}
		// The caller's request stays as it is: whoever logs it keeps its path.
		inner := r.WithContext(context.WithValue(r.Context(), endpointKey{}, kind))
		url := *r.URL
		url.Path, url.RawPath = path, raw
		inner.URL, inner.RequestURI = &url, url.RequestURI()
		next.ServeHTTP(w, inner)
	})
}

type endpointKey struct{}

// endpointKind is how a request came in, if not through the hub's API server.
type endpointKind int

const (
	anEndpoint endpointKind = iota + 1
	aMemberHost
)

// atEndpoint is true if the request did not come through the hub's API server.
func atEndpoint(ctx context.Context) bool { return ctx.Value(endpointKey{}) != nil }

// atMemberHost is true if it came to a host that is its member's alone.
func atMemberHost(ctx context.Context) bool { return ctx.Value(endpointKey{}) == aMemberHost }

// memberOfHost is the label before the domain, empty if there is not exactly one.
func memberOfHost(host, domain string) string {
	if domain == "" {
		return ""
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	member, ok := strings.CutSuffix(strings.ToLower(host), "."+domain)
	if !ok || strings.Contains(member, ".") {
		return ""
	}
	return member
}

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
