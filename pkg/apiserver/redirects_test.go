// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"net/http"
	"testing"
)

const (
	podProxy     = "/api/v1/namespaces/shop/pods/web/proxy"
	serviceProxy = "/api/v1/namespaces/shop/services/http:web:80/proxy"
)

// redirectsTo makes the member redirect.
func (m *member) redirectsTo(code int, location string) {
	m.serve(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", location)
		w.Header().Set("Set-Cookie", "a=b")
		w.WriteHeader(code)
	})
}

func TestRedirects_AddTrailingSlashToPageOfPod(t *testing.T) {
	g, m := oneMember(t)
	for _, path := range []string{podProxy, serviceProxy, "/api/v1/nodes/n:10250/proxy"} {
		for query, want := range map[string]string{"": "proxy/", "?a=b&c=%2F": "proxy/?a=b&c=%2F"} {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				m.redirectsTo(http.StatusMovedPermanently, path+"/"+query)
				res := g.do(method, "/clusters/m1"+path+query, "jane", nil)
				wantCode(t, res, http.StatusMovedPermanently)
				if got := res.Header.Get("Location"); got != want || res.Header.Get("Set-Cookie") != "" {
					t.Errorf("%s %s leads to %q, with cookie %q", method, path+query, got, res.Header.Get("Set-Cookie"))
				}
				there, err := res.Location()
				if err != nil || there.RequestURI() != "/clusters/m1"+path+"/"+query {
					t.Errorf("its caller goes to %v: %v", there, err)
				}
			}
			m.serve(echo)
			if got := seenBy(t, g.do(http.MethodGet, prefix+"m1/proxy"+path+query, "jane", nil)).URI; got != path+"/"+query {
				t.Errorf("through the hub, which passes on no redirect, the member gets %s", got)
			}
		}
	}
}

func TestRedirects_PassOnlyThatOfTheAPIServer(t *testing.T) {
	g, m := oneMember(t)
	for name, c := range map[string]struct {
		method, path string
		code         int
		location     string
	}{
		"another host":         {http.MethodGet, podProxy, http.StatusMovedPermanently, "https://elsewhere.example" + podProxy + "/"},
		"another host, short":  {http.MethodGet, podProxy, http.StatusMovedPermanently, "//elsewhere.example/"},
		"another path":         {http.MethodGet, podProxy, http.StatusMovedPermanently, "/api/v1/namespaces/shop/secrets/"},
		"further on":           {http.MethodGet, podProxy, http.StatusMovedPermanently, podProxy + "/login"},
		"another query":        {http.MethodGet, podProxy, http.StatusMovedPermanently, podProxy + "/?token=x"},
		"for a while":          {http.MethodGet, podProxy, http.StatusFound, podProxy + "/"},
		"with its method":      {http.MethodGet, podProxy, http.StatusPermanentRedirect, podProxy + "/"},
		"a write":              {http.MethodPost, podProxy, http.StatusMovedPermanently, podProxy + "/"},
		"by the page":          {http.MethodGet, podProxy + "/page", http.StatusMovedPermanently, podProxy + "/page/"},
		"of the root":          {http.MethodGet, podProxy + "/", http.StatusMovedPermanently, podProxy + "//"},
		"of something else":    {http.MethodGet, "/api/v1/namespaces/shop/pods/web/log", http.StatusMovedPermanently, "/api/v1/namespaces/shop/pods/web/log/"},
		"to the hub's own API": {http.MethodGet, podProxy, http.StatusMovedPermanently, prefix + "m1/proxy" + podProxy + "/"},
	} {
		t.Run(name, func(t *testing.T) {
			m.redirectsTo(c.code, c.location)
			for _, before := range []string{"/clusters/m1", prefix + "m1/proxy"} {
				res := g.do(c.method, before+c.path, "jane", nil)
				wantCode(t, res, http.StatusBadGateway)
				if res.Header.Get("Location") != "" {
					t.Error("the caller got the Location")
				}
			}
		})
	}
}
