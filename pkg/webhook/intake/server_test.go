// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
)

// unread fails the test that reads it.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, errors.New("not to be read")
}

// as authenticates every request as that user.
func as(name string, groups ...string) authenticator.Request {
	return authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
		return &authenticator.Response{User: &user.DefaultInfo{Name: name, Groups: groups}}, true, nil
	})
}

func nobody(err error) authenticator.Request {
	return authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) { return nil, false, err })
}

func testServer(frontProxy, certificate authenticator.Request, unproved func(context.Context) bool) *Server {
	server := NewServer(Options{Unproved: unproved})
	server.frontProxy, server.certificate = frontProxy, certificate
	return server
}

func TestServer_RefusesOtherCallersWithoutReadingTheBody(t *testing.T) {
	itself := as(user.APIServerUser, user.AllAuthenticated, user.SystemPrivilegedGroup)
	closed := func(context.Context) bool { return false }
	for name, c := range map[string]struct {
		frontProxy, certificate authenticator.Request
		unproved                func(context.Context) bool
		path                    string
		code                    int
	}{
		"a stranger, directly":                            {frontProxy: nobody(nil), path: "/validate", code: http.StatusUnauthorized},
		"a stranger, directly, after the handover":        {frontProxy: nobody(nil), unproved: closed, path: "/validate", code: http.StatusUnauthorized},
		"a stranger, by the group":                        {frontProxy: nobody(nil), path: AggregatedPath("/validate"), code: http.StatusUnauthorized},
		"a stranger, by the group, during the handover":   {frontProxy: nobody(nil), unproved: func(context.Context) bool { return true }, path: AggregatedPath("/validate"), code: http.StatusUnauthorized},
		"a certificate of another CA":                     {certificate: nobody(errors.New("unknown authority")), path: "/validate", code: http.StatusUnauthorized},
		"a user of the hub":                               {frontProxy: as("somebody", user.AllAuthenticated), path: AggregatedPath("/validate"), code: http.StatusForbidden},
		"an administrator of the hub":                     {frontProxy: as("admin", user.SystemPrivilegedGroup), path: AggregatedPath("/validate"), code: http.StatusForbidden},
		"the API server's name without its group":         {frontProxy: as(user.APIServerUser, user.AllAuthenticated), path: AggregatedPath("/validate"), code: http.StatusForbidden},
		"the API server, directly by its own group's way": {frontProxy: itself, path: "/validate", code: http.StatusUnauthorized},
		"the API server, for what is no review":           {frontProxy: itself, path: groupPath() + "/secrets", code: http.StatusNotFound},
		"the API server, for a path that only begins so":  {frontProxy: itself, path: groupPath() + "/reviewsX/validate", code: http.StatusNotFound},
		"a user, for all groups":                          {frontProxy: as("somebody"), path: "/apis/", code: http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			server := testServer(c.frontProxy, c.certificate, c.unproved)
			server.Register("/validate", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler was asked") }))
			request := httptest.NewRequest(http.MethodPost, c.path, unread{t})
			answer := httptest.NewRecorder()
			server.ServeHTTP(answer, request)
			if answer.Code != c.code {
				t.Errorf("the answer is %d %s, want %d", answer.Code, answer.Body, c.code)
			}
			if answer.Header().Get("Connection") != "close" {
				t.Error("the connection stays open with the rest of the body unread")
			}
		})
	}
}

func TestServer_ReviewsReachTheirHandler(t *testing.T) {
	for name, c := range map[string]struct {
		frontProxy, certificate authenticator.Request
		unproved                func(context.Context) bool
		path                    string
	}{
		"by the group":           {frontProxy: as(user.APIServerUser, user.SystemPrivilegedGroup), path: AggregatedPath("/validate")},
		"with a certificate":     {certificate: as("api-server"), path: "/validate"},
		"before the hand was on": {frontProxy: nobody(nil), unproved: func(context.Context) bool { return true }, path: "/validate"},
	} {
		t.Run(name, func(t *testing.T) {
			server, asked := testServer(c.frontProxy, c.certificate, c.unproved), ""
			server.Register("/validate", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = r.URL.Path }))
			server.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, c.path+"?timeout=5s", strings.NewReader("{}")))
			if asked != "/validate" {
				t.Errorf("the handler was asked for %q", asked)
			}
		})
	}
}

// The hub's API server logged an error every two minutes because its request for the group's schema
// got 401. The gateway read the hub's configurations for each request for a schema or for discovery,
// and on a slow hub it logged a refused review that nobody had sent.
func TestServer_AnswersNotFoundForSchemaAndDiscovery(t *testing.T) {
	server := testServer(nobody(nil), nobody(nil), func(context.Context) bool {
		t.Error("the hub is asked whether it sends reviews without proof")
		return false
	})
	for _, path := range []string{"/openapi/v2", "/openapi/v3", "/apis"} {
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
		if answer.Code != http.StatusNotFound {
			t.Errorf("%s: %d, want 404, which the API server takes for none", path, answer.Code)
		}
	}
}

// The API server reads it as other users too: the group is available if the gateway is.
func TestServer_GroupHasNoResources(t *testing.T) {
	answer := httptest.NewRecorder()
	testServer(as("system:kube-aggregator"), nil, nil).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, groupPath(), nil))
	want := `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"webhook.fleetgate.io/v1alpha1","resources":[]}`
	if got := strings.TrimSpace(answer.Body.String()); answer.Code != http.StatusOK || got != want {
		t.Errorf("%d %s, want %s", answer.Code, got, want)
	}
}
