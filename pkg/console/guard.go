// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// cookieName is the session cookie. The host name belongs to this console only.
const cookieName = "console"

// openPath is where the one-time key is exchanged for a session.
const openPath = "/open"

// guard admits only the browser that opened the console.
type guard struct {
	// host is the only accepted host, with port.
	host string
	next http.Handler

	mu sync.Mutex
	// key opens the console once and is empty afterwards. session is the cookie it is exchanged for.
	key, session string
	// form is the token of every form that writes.
	form string
}

// secret is a random text.
func secret() (string, error) {
	bytes := make([]byte, 20)
	if _, err := rand.Read(bytes); err != nil {
		return "", fmt.Errorf("generating a secret: %w", err)
	}
	return hex.EncodeToString(bytes), nil
}

// newGuard generates the secrets. The host is <random>.localhost with the port.
func newGuard(port int, next http.Handler) (*guard, error) {
	g := &guard{next: next}
	var id string
	for _, s := range []*string{&g.key, &g.session, &g.form, &id} {
		var err error
		if *s, err = secret(); err != nil {
			return nil, err
		}
	}
	g.host = fmt.Sprintf("%s.localhost:%d", id[:20], port)
	return g, nil
}

// openURL is the address that opens the console once.
func (g *guard) openURL() string { return "http://" + g.host + openPath + "?key=" + g.key }

// ServeHTTP implements http.Handler.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	switch {
	case r.Host != g.host:
		// DNS rebinding uses other names for loopback.
		http.Error(w, "Unknown host.", http.StatusMisdirectedRequest)
	case !g.ofOurPages(r):
		http.Error(w, "Cross-origin request rejected.", http.StatusForbidden)
	case r.URL.Path == openPath && r.Method == http.MethodGet:
		g.open(w, r)
	case !g.hasSession(r):
		http.Error(w, "No valid session. The opening address works once: run kubectl fleetgate console again.", http.StatusForbidden)
	case r.Method == http.MethodPost && !g.formIsOurs(r):
		http.Error(w, "Invalid form token or origin.", http.StatusForbidden)
	case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost:
		http.Error(w, "Method not allowed.", http.StatusMethodNotAllowed)
	default:
		g.next.ServeHTTP(w, r)
	}
}

// protect sets the headers that block content from, and embedding by, other pages.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	// Not no-referrer: with that, browsers send forms with Origin null.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// ofOurPages is false for requests from other pages. Only the opening request may come from elsewhere:
// from the redirect file.
func (g *guard) ofOurPages(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+g.host {
		return false
	}
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "" || site == "same-origin" || site == "none" || r.URL.Path == openPath && r.Header.Get("Sec-Fetch-Mode") == "navigate"
}

// open exchanges the key for a session, once. The page refreshes itself: an HTTP redirect would count
// as cross-site, and browsers would not send the cookie.
func (g *guard) open(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	valid := g.key != "" && same(r.URL.Query().Get("key"), g.key)
	if valid {
		g.key = ""
	}
	g.mu.Unlock()
	if !valid {
		http.Error(w, "The opening address works once: run kubectl fleetgate console again.", http.StatusForbidden)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: g.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(`<!doctype html><html lang="en"><meta charset="utf-8"><title>fleetgate</title><link rel="icon" href="/static/icon.svg"><meta http-equiv="refresh" content="0; url=/"><a href="/">Continue</a></html>`))
}

func (g *guard) hasSession(r *http.Request) bool {
	cookie, err := r.Cookie(cookieName)
	return err == nil && same(cookie.Value, g.session)
}

// formIsOurs is true for a form of one of our pages: it has the form token, and the browser sends our
// origin.
func (g *guard) formIsOurs(r *http.Request) bool {
	return r.Header.Get("Origin") == "http://"+g.host && strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") &&
		same(r.PostFormValue("form"), g.form)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
