// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"net/http"
	"net/url"
	"strings"
)

// For pods/NAME/proxy, and the same of Services and nodes, a member's API server redirects GET and
// HEAD to the path with a trailing slash, so that relative links of a page work. This is the only
// redirect that callers get: any other would send the caller, with its credentials, wherever a
// member wants.
//
// At the gateway's own endpoint the caller gets that redirect, rewritten by the gateway. The hub's
// API server passes no redirect of an aggregated server on. A request that came through it is
// therefore repeated with the slash, and API clients get the page.

// At a member's own host, redirects within one Pod or Service are passed on too, for example to a
// login page. A member's API server rewrites them to paths below its own /proxy/, which do not
// exist at the path that the caller used.

// within is true for a path below the requested /proxy/.
func within(location string, request *Request) bool {
	to, err := url.Parse(location)
	if err != nil || to.IsAbs() || to.Host != "" || checkPath(to.Path, to.EscapedPath()) != nil {
		return false
	}
	return strings.HasPrefix(to.Path, request.pageRoot())
}

// pageRoot is the path of what one Pod, Service or node serves.
func (r *Request) pageRoot() string {
	of := []string{"", r.Info.APIPrefix, r.Info.APIVersion}
	if r.Info.Namespace != "" {
		of = append(of, "namespaces", r.Info.Namespace)
	}
	return strings.Join(append(of, r.Info.Resource, r.Info.Name, r.Info.Subresource, ""), "/")
}

// isForProxyRoot is true for requests that a member's API server redirects.
func (r *Request) isForProxyRoot(method string) bool {
	return (method == http.MethodGet || method == http.MethodHead) && !r.Upgrade &&
		r.Info.IsResourceRequest && r.Info.Subresource == "proxy" && len(r.Info.Parts) == 3 && !strings.HasSuffix(r.Path, "/")
}

// toProxyRoot is the request for the redirect's target.
func (r *Request) toProxyRoot() *Request {
	root := *r
	root.Path, root.RawPath = r.Path+"/", r.RawPath+"/"
	return &root
}

// ownRedirect returns the Location, relative to the requested path, if the reply is the redirect of
// the member's API server itself.
func ownRedirect(res *http.Response) (location string, ok bool) {
	request := exchangeFrom(res.Request.Context()).request
	query := ""
	if request.RawQuery != "" {
		query = "?" + request.RawQuery
	}
	if location := res.Header.Get("Location"); request.isPage() && atMemberHost(res.Request.Context()) && within(location, request) {
		return location, true
	}
	if res.StatusCode != http.StatusMovedPermanently || !atEndpoint(res.Request.Context()) ||
		!request.isForProxyRoot(res.Request.Method) || res.Header.Get("Location") != request.Path+"/"+query {
		return "", false
	}
	return "proxy/" + query, true
}
