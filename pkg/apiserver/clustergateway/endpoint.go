// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"net"
	"net/http"
	"strings"

	"fleetgate.io/fleetgate/pkg/apiserver/paths"
)

// WithEndpoint makes /clusters/<member>/<path> an alias of the path of the member's ClusterGateway:
// authorization and refusals are the same. It must run before everything that reads the path. If
// memberDomain is not empty, <path> at host <member>.<memberDomain> is an alias too. This serves
// clients that cannot have a path in a server's address, and cookies, because each host is an
// origin of its own.
func WithEndpoint(next http.Handler, memberDomain string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind := anEndpoint
		path, ok := behindEndpoint(r.URL.Path)
		raw, rawOK := behindEndpoint(r.URL.EscapedPath())
		if member := memberOfHost(r.Host, memberDomain); member != "" {
			kind = aMemberHost
			path, raw, ok, rawOK = paths.Member+member+"/proxy"+r.URL.Path, paths.Member+member+"/proxy"+r.URL.EscapedPath(), true, true
		}
		if !ok || !rawOK {
			next.ServeHTTP(w, r)
			return
		}
		// The original request is not changed, so that logs show the caller's path.
		inner := r.WithContext(context.WithValue(r.Context(), endpointKey{}, kind))
		url := *r.URL
		url.Path, url.RawPath = path, raw
		inner.URL, inner.RequestURI = &url, url.RequestURI()
		next.ServeHTTP(w, inner)
	})
}

type endpointKey struct{}

// endpointKind says by which endpoint a request arrived, if not through the hub's API server.
type endpointKind int

const (
	anEndpoint endpointKind = iota + 1
	aMemberHost
)

// atEndpoint is true if the request did not come through the hub's API server.
func atEndpoint(ctx context.Context) bool { return ctx.Value(endpointKey{}) != nil }

// atMemberHost is true if the request arrived at its member's own host.
func atMemberHost(ctx context.Context) bool { return ctx.Value(endpointKey{}) == aMemberHost }

// memberOfHost is the label before the domain. It is empty if there is not exactly one label.
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

// behindEndpoint translates a path at the endpoint to the path of the ClusterGateway.
func behindEndpoint(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, paths.MemberEndpoint)
	if !ok {
		return "", false
	}
	member, inner, more := strings.Cut(rest, "/")
	if member == "" {
		return "", false
	}
	path = paths.Member + member + "/proxy"
	if more {
		path += "/" + inner
	}
	return path, true
}
