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

// cookieName is that of the session, on a host that is this console's alone.
const cookieName = "console"

// openPath is where the one-time key is exchanged for a session.
const openPath = "/open"

// guard lets in whoever opened the console, and nobody else.
type guard struct {
	// host is the only one that is answered, with its port.
	host string
	next http.Handler

	mu sync.Mutex
	// key opens the console once; empty afterwards. session is what it was exchanged for.
	key, session string
	// form is in every form that writes.
	form string
}

// secret is a text that nobody can guess.
func secret() (string, error) {
	bytes := make([]byte, 20)
	if _, err := rand.Read(bytes); err != nil {
		return "", fmt.Errorf("making a secret: %w", err)
	}
	return hex.EncodeToString(bytes), nil
}

// newGuard makes the secrets. The host's name is <random>.localhost, to which a port is added.
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
		// Another name for loopback is how pages of others get at it.
		http.Error(w, "This is not a page for you.", http.StatusMisdirectedRequest)
	case !g.ofOurPages(r):
		http.Error(w, "Asked from another page.", http.StatusForbidden)
	case r.URL.Path == openPath && r.Method == http.MethodGet:
		g.open(w, r)
	case !g.knows(r):
		http.Error(w, "This address was used before, or is another's: run kubectl fleetgate console again.", http.StatusForbidden)
	case r.Method == http.MethodPost && !g.formIsOurs(r):
		http.Error(w, "This form is not of this page.", http.StatusForbidden)
	case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost:
		http.Error(w, "The console only reads.", http.StatusMethodNotAllowed)
	default:
		g.next.ServeHTTP(w, r)
	}
}

// protect sets what keeps a page from doing, or showing, anything of others.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	// Not no-referrer: with that a browser sends a form with the Origin null.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// ofOurPages is false for requests that other pages make. Opening is the one that may come
// from elsewhere: from the redirect file.
func (g *guard) ofOurPages(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+g.host {
		return false
	}
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "" || site == "same-origin" || site == "none" || r.URL.Path == openPath && r.Header.Get("Sec-Fetch-Mode") == "navigate"
}

// open exchanges the key for a session, once. The page leads on by itself: a redirect would
// still count as coming from elsewhere, and have no cookie.
func (g *guard) open(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	right := g.key != "" && same(r.URL.Query().Get("key"), g.key)
	if right {
		g.key = ""
	}
	g.mu.Unlock()
	if !right {
		http.Error(w, "This address was used before: run kubectl fleetgate console again.", http.StatusForbidden)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: g.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(`<!doctype html><html lang="en"><meta charset="utf-8"><title>fleetgate</title><link rel="icon" href="/static/icon.svg"><meta http-equiv="refresh" content="0; url=/"><a href="/">Go on</a></html>`))
}

func (g *guard) knows(r *http.Request) bool {
	cookie, err := r.Cookie(cookieName)
	return err == nil && same(cookie.Value, g.session)
}

// formIsOurs is true for a form of one of our pages: it has the text that only they know, and
// the browser says that it comes from them.
func (g *guard) formIsOurs(r *http.Request) bool {
	return r.Header.Get("Origin") == "http://"+g.host && strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") &&
		same(r.PostFormValue("form"), g.form)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
