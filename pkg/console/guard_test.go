// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// asked is a request as a browser sends it, with changes.
func asked(g *guard, method, target string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://"+g.host+target, nil)
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w
}

func guarded(t *testing.T) *guard {
	t.Helper()
	g, err := newGuard(1234, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("the fleet")) }))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *guard) cookie(r *http.Request) {
	r.AddCookie(&http.Cookie{Name: cookieName, Value: g.session})
}

func TestGuard_OpensOnce(t *testing.T) {
	g := guarded(t)
	open, err := url.Parse(g.openURL())
	if err != nil {
		t.Fatal(err)
	}
	fromAFile := func(r *http.Request) {
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Sec-Fetch-Mode", "navigate")
	}
	if w := asked(g, http.MethodGet, openPath+"?key=wrong", fromAFile); w.Code != http.StatusForbidden {
		t.Errorf("wrong key: %d", w.Code)
	}
	w := asked(g, http.MethodGet, open.RequestURI(), fromAFile)
	cookies := w.Result().Cookies()
	if w.Code != http.StatusOK || len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode || cookies[0].Domain != "" {
		t.Fatalf("got %d, %v", w.Code, cookies)
	}
	if again := asked(g, http.MethodGet, open.RequestURI(), fromAFile); again.Code != http.StatusForbidden || len(again.Result().Cookies()) != 0 {
		t.Errorf("second use of the key: %d", again.Code)
	}
	if w := asked(g, http.MethodGet, "/", func(r *http.Request) { r.AddCookie(cookies[0]) }); w.Body.String() != "the fleet" {
		t.Errorf("with the cookie: %d %s", w.Code, w.Body)
	}
}

func TestGuard_RejectsOtherClients(t *testing.T) {
	g := guarded(t)
	for name, test := range map[string]struct {
		method, target string
		change         func(*http.Request)
		want           int
	}{
		"valid cookie":         {http.MethodGet, "/", g.cookie, http.StatusOK},
		"no cookie":            {http.MethodGet, "/", nil, http.StatusForbidden},
		"wrong cookie":         {http.MethodGet, "/", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: cookieName, Value: "x"}) }, http.StatusForbidden},
		"localhost":            {http.MethodGet, "/", func(r *http.Request) { g.cookie(r); r.Host = "localhost:1234" }, http.StatusMisdirectedRequest},
		"IP address as host":   {http.MethodGet, "/", func(r *http.Request) { g.cookie(r); r.Host = "127.0.0.1:1234" }, http.StatusMisdirectedRequest},
		"other port":           {http.MethodGet, "/", func(r *http.Request) { g.cookie(r); r.Host = strings.Replace(g.host, "1234", "1235", 1) }, http.StatusMisdirectedRequest},
		"DNS rebinding":        {http.MethodGet, "/", func(r *http.Request) { g.cookie(r); r.Host = "evil.example.com" }, http.StatusMisdirectedRequest},
		"cross-site":           {http.MethodGet, "/", func(r *http.Request) { g.cookie(r); r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		"same-site":            {http.MethodGet, "/", func(r *http.Request) { g.cookie(r); r.Header.Set("Sec-Fetch-Site", "same-site") }, http.StatusForbidden},
		"foreign origin":       {http.MethodGet, "/", func(r *http.Request) { g.cookie(r); r.Header.Set("Origin", "http://evil.example.com") }, http.StatusForbidden},
		"null origin":          {http.MethodGet, "/", func(r *http.Request) { g.cookie(r); r.Header.Set("Origin", "null") }, http.StatusForbidden},
		"write without a form": {http.MethodPost, "/runs", func(r *http.Request) { g.cookie(r); r.Header.Set("Origin", "http://"+g.host) }, http.StatusForbidden},
		"delete":               {http.MethodDelete, "/", g.cookie, http.StatusMethodNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			w := asked(g, test.method, test.target, test.change)
			if w.Code != test.want {
				t.Errorf("got %d %s, want %d", w.Code, w.Body, test.want)
			}
			for header, want := range map[string]string{"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cache-Control": "no-store"} {
				if got := w.Header().Get(header); !strings.Contains(got, want) || strings.Contains(got, "unsafe") {
					t.Errorf("header %s = %q", header, got)
				}
			}
		})
	}
}

func TestGuard_AcceptsOnlyOwnForms(t *testing.T) {
	g := guarded(t)
	post := func(form, origin string) int {
		r := httptest.NewRequest(http.MethodPost, "http://"+g.host+"/runs", strings.NewReader(url.Values{"form": {form}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", origin)
		g.cookie(r)
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		return w.Code
	}
	if got := post(g.form, "http://"+g.host); got != http.StatusOK {
		t.Errorf("own form: %d", got)
	}
	if got := post("guessed", "http://"+g.host); got != http.StatusForbidden {
		t.Errorf("wrong token: %d", got)
	}
	if got := post(g.form, ""); got != http.StatusForbidden {
		t.Errorf("no origin: %d", got)
	}
}
