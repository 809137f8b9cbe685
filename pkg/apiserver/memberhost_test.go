// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"net/http"
	"slices"
	"testing"

	"fleetgate.io/fleetgate/pkg/apiserver"
)

func atHost(name string) func(*http.Request) {
	return func(r *http.Request) { r.Host = name }
}

func withMemberDomain(c *apiserver.Config) { c.MemberDomain = "members.example.org" }

// kubectl before 1.36 drops the path of a server's URL in `get --raw`.
func TestMemberHost_ForwardsToItsMember(t *testing.T) {
	g, _ := oneMember(t, withMemberDomain)
	for _, host := range []string{"m1.members.example.org", "M1.Members.Example.ORG:8443"} {
		for _, path := range []string{"/api/v1/namespaces?limit=1", "/clusters/m1/api", "/readyz", "/"} {
			if got := seenBy(t, g.do(http.MethodGet, path, "jane", nil, atHost(host))).URI; got != path {
				t.Errorf("at %s the member gets %s, want %s", host, got, path)
			}
		}
	}
	for host, want := range map[string]int{
		"m2.members.example.org":    http.StatusNotFound,
		"a.m1.members.example.org":  http.StatusNotFound,
		"members.example.org":       http.StatusNotFound,
		"m1.members.example.org.nl": http.StatusNotFound,
		"m1members.example.org":     http.StatusNotFound,
	} {
		wantCode(t, g.do(http.MethodGet, "/api/v1/namespaces", "jane", nil, atHost(host)), want)
	}
	wantCode(t, g.do(http.MethodGet, "/api/v1/../namespaces", "jane", nil, atHost("m1.members.example.org")), http.StatusBadRequest)
}

func TestMemberHost_CookiesStayOnTheHost(t *testing.T) {
	g, m := oneMember(t, withMemberDomain)
	got := make(chan []string, 1)
	m.serve(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header["Cookie"]
		w.Header().Add("Set-Cookie", "session=1; Path=/; HttpOnly; SameSite=Strict; Domain=members.example.org")
		w.Header().Add("Set-Cookie", "theme=dark")
		w.Header().Set("Clear-Site-Data", `"*"`)
	})
	sent := header("Cookie", "session=1; theme=dark")
	for name, test := range map[string]struct {
		path, host string
		sent, set  []string
	}{
		"a page at the member's host": {podProxy + "/", "m1.members.example.org", []string{"session=1; theme=dark"},
			[]string{"session=1; Path=/; HttpOnly; Secure; SameSite=Strict", "theme=dark; Secure"}},
		"its API there":         {"/api/v1/pods", "m1.members.example.org", nil, nil},
		"a page at the gateway": {"/clusters/m1" + podProxy + "/", "gateway.example.org", nil, nil},
		"a page by the hub":     {prefix + "m1/proxy" + podProxy + "/", "gateway.fleet-system.svc", nil, nil},
	} {
		res := g.do(http.MethodGet, test.path, "jane", nil, atHost(test.host), sent)
		if cookies := <-got; !slices.Equal(cookies, test.sent) {
			t.Errorf("%s: the member got %q, want %q", name, cookies, test.sent)
		}
		if set := res.Header["Set-Cookie"]; !slices.Equal(set, test.set) || res.Header.Get("Clear-Site-Data") != "" {
			t.Errorf("%s: the caller got %q, want %q", name, set, test.set)
		}
		if csp := res.Header.Get("Content-Security-Policy"); csp != "sandbox" {
			t.Errorf("%s: scripts are blocked by %q", name, csp)
		}
	}
}

func TestMemberHost_PassesRedirectsWithinAPage(t *testing.T) {
	g, m := oneMember(t, withMemberDomain)
	for location, want := range map[string]int{
		podProxy + "/login?next=%2F":                http.StatusFound,
		podProxy + "/":                              http.StatusFound,
		"/api/v1/namespaces/shop/pods/other/proxy/": http.StatusBadGateway,
		"/api/v1/secrets":                           http.StatusBadGateway,
		podProxy + "/../../../secrets":              http.StatusBadGateway,
		podProxy + "/%2e%2e/x":                      http.StatusBadGateway,
		"//elsewhere.example" + podProxy + "/":      http.StatusBadGateway,
		"https://m1.members.example.org" + podProxy: http.StatusBadGateway,
		"/\\elsewhere.example/":                     http.StatusBadGateway,
	} {
		m.redirectsTo(http.StatusFound, location)
		res := g.do(http.MethodGet, podProxy+"/page", "jane", nil, atHost("m1.members.example.org"))
		wantCode(t, res, want)
		if got := res.Header.Get("Location"); want == http.StatusFound && got != location {
			t.Errorf("it leads to %q, want %q", got, location)
		}
		wantCode(t, g.do(http.MethodGet, "/clusters/m1"+podProxy+"/page", "jane", nil), http.StatusBadGateway)
	}
	// A namespace may be named like a subresource.
	const inside = "/api/v1/namespaces/proxy/pods/web/proxy"
	m.redirectsTo(http.StatusFound, "/api/v1/namespaces/proxy/secrets/")
	wantCode(t, g.do(http.MethodGet, inside+"/page", "jane", nil, atHost("m1.members.example.org")), http.StatusBadGateway)
	m.redirectsTo(http.StatusFound, inside+"/login")
	wantCode(t, g.do(http.MethodGet, inside+"/page", "jane", nil, atHost("m1.members.example.org")), http.StatusFound)
}
