// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"net/http"
	"net/url"
	"strings"
)

// Of pods/NAME/proxy, and the same of Services and nodes, a member's API server has GET and
// HEAD come again with a slash behind, so that relative links of a page lead where they
// should. No other redirect is passed on: it would lead the caller, with its credentials,
// where a member wants.
//
// At the gateway's own endpoint the caller gets that one, in words of ours. The hub's API
// server lets no redirect of an aggregated server pass, so what comes through it is sent on
// with the slash: API clients get what they ask for.

// At a host that is the member's alone, redirects within what one Pod or Service serves are
// passed on too, such as those of a login: a member's API server makes them paths below its
// own /proxy/, and they lead nowhere where the caller was not.

// within is true for a path below the /proxy/ that was asked for.
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

// asksForProxyRoot is true where a member's API server redirects.
func (r *Request) asksForProxyRoot(method string) bool {
	return (method == http.MethodGet || method == http.MethodHead) && !r.Upgrade &&
		r.Info.IsResourceRequest && r.Info.Subresource == "proxy" && len(r.Info.Parts) == 3 && !strings.HasSuffix(r.Path, "/")
}

// toProxyRoot is the request that the redirect would lead to.
func (r *Request) toProxyRoot() *Request {
	there := *r
	there.Path, there.RawPath = r.Path+"/", r.RawPath+"/"
	return &there
}

// ownRedirect returns the Location, relative to what the caller asked for, if the reply is
// the redirect of the member's API server itself.
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
		!request.asksForProxyRoot(res.Request.Method) || res.Header.Get("Location") != request.Path+"/"+query {
		return "", false
	}
	return "proxy/" + query, true
}
