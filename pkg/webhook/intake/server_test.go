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

// as proves that a request is of that user.
func as(name string, groups ...string) authenticator.Request {
	return authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
		return &authenticator.Response{User: &user.DefaultInfo{Name: name, Groups: groups}}, true, nil
	})
}

func nobody(err error) authenticator.Request {
	return authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) { return nil, false, err })
}

func TestWhoIsNotTheAPIServerIsRefusedUnread(t *testing.T) {
	itself := as(user.APIServerUser, user.AllAuthenticated, user.SystemPrivilegedGroup)
	closed := func(context.Context) bool { return false }
	for name, c := range map[string]struct {
		options Options
		path    string
		code    int
	}{
		"a stranger, directly":                            {Options{FrontProxy: nobody(nil)}, "/validate", http.StatusUnauthorized},
		"a stranger, directly, after the handover":        {Options{FrontProxy: nobody(nil), Unproved: closed}, "/validate", http.StatusUnauthorized},
		"a stranger, by the group":                        {Options{FrontProxy: nobody(nil)}, AggregatedPath("/validate"), http.StatusUnauthorized},
		"a stranger, by the group, during the handover":   {Options{FrontProxy: nobody(nil), Unproved: func(context.Context) bool { return true }}, AggregatedPath("/validate"), http.StatusUnauthorized},
		"a certificate of another CA":                     {Options{Certificate: nobody(errors.New("unknown authority"))}, "/validate", http.StatusUnauthorized},
		"a user of the hub":                               {Options{FrontProxy: as("somebody", user.AllAuthenticated)}, AggregatedPath("/validate"), http.StatusForbidden},
		"an administrator of the hub":                     {Options{FrontProxy: as("admin", user.SystemPrivilegedGroup)}, AggregatedPath("/validate"), http.StatusForbidden},
		"the API server's name without its group":         {Options{FrontProxy: as(user.APIServerUser, user.AllAuthenticated)}, AggregatedPath("/validate"), http.StatusForbidden},
		"the API server, directly by its own group's way": {Options{FrontProxy: itself}, "/validate", http.StatusUnauthorized},
		"the API server, for what is no review":           {Options{FrontProxy: itself}, groupPath() + "/secrets", http.StatusNotFound},
		"the API server, for a path that only begins so":  {Options{FrontProxy: itself}, groupPath() + "/reviewsX/validate", http.StatusNotFound},
		"a user, for all groups":                          {Options{FrontProxy: as("somebody")}, "/apis/", http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			server := NewServer(c.options)
			server.Register("/validate", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler was asked") }))
			request := httptest.NewRequest(http.MethodPost, c.path, unread{t})
			answer := httptest.NewRecorder()
			server.ServeHTTP(answer, request)
			if answer.Code != c.code {
				t.Errorf("the answer is %d %s, want %d", answer.Code, answer.Body, c.code)
			}
			if answer.Header().Get("Connection") != "close" {
				t.Error("the connection goes on, with the rest of the body on it")
			}
		})
	}
}

func TestReviewsOfTheAPIServerReachTheirHandler(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		path    string
	}{
		"by the group":           {Options{FrontProxy: as(user.APIServerUser, user.SystemPrivilegedGroup)}, AggregatedPath("/validate")},
		"with a certificate":     {Options{Certificate: as("api-server")}, "/validate"},
		"before the hand was on": {Options{FrontProxy: nobody(nil), Unproved: func(context.Context) bool { return true }}, "/validate"},
	} {
		t.Run(name, func(t *testing.T) {
			server, asked := NewServer(c.options), ""
			server.Register("/validate", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = r.URL.Path }))
			server.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, c.path+"?timeout=5s", strings.NewReader("{}")))
			if asked != "/validate" {
				t.Errorf("the handler was asked for %q", asked)
			}
		})
	}
}

// The API server asks for it as other users: the group is as available as the gateway.
func TestTheGroupHasNothingToDiscover(t *testing.T) {
	answer := httptest.NewRecorder()
	NewServer(Options{FrontProxy: as("system:kube-aggregator")}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, groupPath(), nil))
	want := `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"webhook.fleetgate.io/v1alpha1","resources":[]}`
	if got := strings.TrimSpace(answer.Body.String()); answer.Code != http.StatusOK || got != want {
		t.Errorf("%d %s, want %s", answer.Code, got, want)
	}
}
