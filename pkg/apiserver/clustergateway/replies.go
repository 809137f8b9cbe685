// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"fmt"
	"net/http"
)

// passing are the headers of a member's reply that reach its caller, in canonical form: those that
// Kubernetes' API servers send, those that kubectl, Helm and client-go read, and those that
// describe the body. All others, known or future, could act on the hub's origin or speak for the
// hub: cookies, Clear-Site-Data, Refresh, NEL, Report-To, Service-Worker-Allowed, Alt-Svc,
// Strict-Transport-Security, Access-Control-*. The gateway itself sets Audit-Id, Cache-Control and
// X-Kubernetes-Pf-*.
var passing = map[string]bool{
	"Accept-Ranges":       true,
	"Allow":               true,
	"Content-Disposition": true,
	"Content-Encoding":    true,
	"Content-Language":    true,
	"Content-Length":      true,
	"Content-Range":       true,
	"Content-Type":        true,
	"Date":                true,
	"Etag":                true,
	"Last-Modified":       true,
	"Retry-After":         true,
	"Vary":                true,
	"Warning":             true,
	// exec and similar subresources list their protocols in it when they refuse one.
	"X-Accepted-Stream-Protocol-Versions": true,
}

// switching are headers that also pass when protocols are switched: the chosen protocol, and what
// WebSocket and SPDY negotiate.
var switching = map[string]bool{
	"Connection":                true,
	"Upgrade":                   true,
	"Sec-Websocket-Accept":      true,
	"Sec-Websocket-Extensions":  true,
	"Sec-Websocket-Protocol":    true,
	"X-Stream-Protocol-Version": true,
}

// checkReply refuses a redirect and a reply that says that the member does not know the gateway,
// and removes all headers that must not pass. No browser may run anything in a body, whatever its
// type: HTML, SVG and XML are shown in a sandbox, whose origin is not the hub's. Other clients
// ignore that.
func checkReply(res *http.Response) error {
	x := exchangeFrom(res.Request.Context())
	location, moved := ownRedirect(res)
	if redirects(res) && !moved {
		return badGateway(x.request.Member, fmt.Sprintf("member %q answered with a redirect, which is not followed", x.request.Member))
	}
	if res.StatusCode == http.StatusUnauthorized && x.request.Info.Subresource != "proxy" {
		return unavailable(x.request.Member, fmt.Sprintf("member %q does not accept the gateway's token", x.request.Member))
	}
	cookies := cookiesOf(res, x.request)
	for name := range res.Header {
		if !passing[name] && (res.StatusCode != http.StatusSwitchingProtocols || !switching[name]) {
			delete(res.Header, name)
		}
	}
	if moved {
		res.Header.Set("Location", location)
	}
	for _, cookie := range cookies {
		res.Header.Add("Set-Cookie", cookie.String())
	}
	res.Header.Set("X-Content-Type-Options", "nosniff")
	res.Header.Set("Content-Security-Policy", "sandbox")
	passBody(res)
	return nil
}

// cookiesOf returns the cookies that a page of a member may set: at the member's own host, for this
// host only, and over TLS only.
func cookiesOf(res *http.Response, request *Request) []*http.Cookie {
	if !request.isPage() || !atMemberHost(res.Request.Context()) {
		return nil
	}
	cookies := res.Cookies()
	for _, cookie := range cookies {
		cookie.Domain, cookie.Secure = "", true
	}
	return cookies
}

func redirects(res *http.Response) bool {
	switch res.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return res.StatusCode >= 300 && res.StatusCode < 400 && res.Header.Get("Location") != ""
}
