// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"fleetgate.io/fleetgate/pkg/apiserver"
)

// hub is an API server that authenticates callers. Like a busy one, it is slow to answer lists.
type hub struct {
	*httptest.Server
	// listed is closed when lists are answered.
	listed chan struct{}

	// mu guards the published data; nil is none.
	mu        sync.Mutex
	published map[string]string
}

func newHub(t testing.TB, published map[string]string) *hub {
	t.Helper()
	h := &hub{listed: make(chan struct{}), published: published}
	const path = "/api/v1/namespaces/kube-system/configmaps"
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+path+"/extension-apiserver-authentication", func(w http.ResponseWriter, _ *http.Request) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.published == nil {
			w.WriteHeader(http.StatusNotFound)
			reply(w, metav1.Status{TypeMeta: kind("v1", "Status"), Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound})
			return
		}
		reply(w, h.configMap())
	})
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
			return
		case <-h.listed:
		}
		if r.URL.Query().Get("sendInitialEvents") != "" {
			w.WriteHeader(http.StatusUnprocessableEntity)
			reply(w, metav1.Status{TypeMeta: kind("v1", "Status"), Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity})
			return
		}
		if r.URL.Query().Get("watch") != "" {
			<-r.Context().Done()
			return
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		reply(w, corev1.ConfigMapList{TypeMeta: kind("v1", "ConfigMapList"), ListMeta: metav1.ListMeta{ResourceVersion: "2"}, Items: []corev1.ConfigMap{h.configMap()}})
	})
	mux.HandleFunc("POST /apis/authorization.k8s.io/v1/subjectaccessreviews", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, authorizationv1.SubjectAccessReview{
			TypeMeta: kind("authorization.k8s.io/v1", "SubjectAccessReview"),
			Status:   authorizationv1.SubjectAccessReviewStatus{Allowed: true},
		})
	})
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(h.CloseClientConnections)
	return h
}

func kind(version, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version, Kind: kind}
}

func reply(w io.Writer, object any) { _ = json.NewEncoder(w).Encode(object) }

func (h *hub) configMap() corev1.ConfigMap {
	return corev1.ConfigMap{
		TypeMeta:   kind("v1", "ConfigMap"),
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "extension-apiserver-authentication", ResourceVersion: "1"},
		Data:       h.published,
	}
}

// publish sets the published data, and answers the lists that wait for it.
func (h *hub) publish(data map[string]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.published = data
	close(h.listed)
}

// asHub makes the gateway authenticate callers through the hub.
func asHub(h *hub) option {
	return func(c *apiserver.Config) {
		c.Authenticator, c.Authorizer = nil, nil
		c.Hub = &rest.Config{Host: h.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	}
}

// withCertificate is a client that has a certificate of the authority, and sends it if the server
// asks for one of that authority.
func (g *gateway) withCertificate(users *authority, name string) *http.Client {
	g.t.Helper()
	pair, err := tls.X509KeyPair(users.leaf(name))
	if err != nil {
		g.t.Fatal(err)
	}
	transport := g.client.Transport.(*http.Transport).Clone()
	transport.TLSClientConfig.Certificates = []tls.Certificate{pair}
	g.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func publishedBy(users, apiServers *authority) map[string]string {
	return map[string]string{
		"client-ca-file":                     string(users.pem()),
		"requestheader-client-ca-file":       string(apiServers.pem()),
		"requestheader-username-headers":     `["X-Remote-User"]`,
		"requestheader-group-headers":        `["X-Remote-Group"]`,
		"requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
		"requestheader-allowed-names":        `["front-proxy"]`,
	}
}

func TestStarting_FirstRequestWithCertificateIsAuthenticated(t *testing.T) {
	users, apiServers := newAuthority(t), newAuthority(t)
	h := newHub(t, publishedBy(users, apiServers))
	g := newGateway(t, map[string]*member{"a": newMember(t, http.HandlerFunc(echo))}, asHub(h))
	for name, client := range map[string]*http.Client{
		"directly":        g.withCertificate(users, "jane"),
		"through the hub": g.withCertificate(apiServers, "front-proxy"),
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+g.address+prefix+"a/proxy/api", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Remote-User", "jane")
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		if got := seenBy(t, res).Header.Get("Impersonate-User"); got != "jane" {
			t.Errorf("%s: the member saw %q", name, got)
		}
	}
	wantCode(t, g.do(http.MethodGet, prefix+"a/proxy/api", "jane", nil), http.StatusUnauthorized)
}

func TestStarting_UnavailableUntilCallersCanBeAuthenticated(t *testing.T) {
	h, ready := newHub(t, nil), make(chan struct{})
	g := newGateway(t, map[string]*member{"a": newMember(t, http.HandlerFunc(echo))}, asHub(h), func(c *apiserver.Config) {
		listening := c.OnServing
		c.OnServing = func() { close(ready) }
		listening()
	})
	users, apiServers := newAuthority(t), newAuthority(t)
	client := g.withCertificate(users, "jane")
	get := func(path string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+g.address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		return res
	}
	for _, path := range []string{prefix + "a/proxy/api", "/clusters/a/api", resource} {
		res := get(path)
		wantCode(t, res, http.StatusServiceUnavailable)
		if res.Header.Get("Retry-After") != "1" {
			t.Errorf("%s: client-go is not told to retry", path)
		}
		if got := statusOf(t, res).Message; !strings.Contains(got, "extension-apiserver-authentication") {
			t.Errorf("%s: got %q", path, got)
		}
	}
	wantCode(t, get("/readyz"), http.StatusInternalServerError)
	wantCode(t, get("/livez"), http.StatusOK)
	select {
	case <-ready:
		t.Error("It says that it serves.")
	default:
	}
	h.publish(publishedBy(users, apiServers))
	select {
	case <-ready:
	case <-time.After(20 * time.Second):
		t.Fatal("The gateway does not become ready.")
	}
	wantCode(t, get("/readyz"), http.StatusOK)
	if got := seenBy(t, get("/clusters/a/api")).Header.Get("Impersonate-User"); got != "jane" {
		t.Errorf("the member saw %q", got)
	}
}
