// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"testing"

	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"

	"fleetgate.io/fleetgate/pkg/apiserver"
)

// answersWhoMay returns callers' names to those that may do something with Placements.
func answersWhoMay(may authorizer.UnconditionalAuthorizer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, _ := apirequest.UserFrom(r.Context())
		if decision, _, _ := may.Authorize(r.Context(), authorizer.AttributesRecord{User: caller, Resource: "placements", ResourceRequest: true}); decision != authorizer.DecisionAllow {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = w.Write([]byte("for " + caller.GetName()))
	})
}

// The debug handler authorizes callers itself: access to the path alone is neither required nor
// sufficient.
func TestDebug_RequestsReachTheHandler(t *testing.T) {
	g := newGateway(t, nil, func(c *apiserver.Config) { c.Debug = answersWhoMay })
	g.allowOnly(func(a authorizer.Attributes) bool { return a.GetResource() == "placements" })
	res := g.do(http.MethodGet, "/debug/placements/a/b", "u", nil)
	wantCode(t, res, http.StatusOK)
	if got := text(t, res); got != "for u" {
		t.Errorf("got %q", got)
	}
	wantCode(t, g.do(http.MethodGet, "/metrics", "u", nil), http.StatusForbidden)
	g.allowOnly(func(authorizer.Attributes) bool { return false })
	wantCode(t, g.do(http.MethodGet, "/debug/placements/a/b", "u", nil), http.StatusForbidden)
	wantCode(t, newGateway(t, nil).do(http.MethodGet, "/debug/placements/a/b", "u", nil), http.StatusNotFound)
}

// A gateway without members served nothing, so nobody could debug it.
func TestDebugServer_ServesGatewayWithoutMembers(t *testing.T) {
	authentication, err := headerrequest.New([]string{"X-Remote-User"}, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	ca := newAuthority(t)
	certPEM, keyPEM := ca.leaf("gateway.test")
	certificate, err := dynamiccertificates.NewStaticCertKeyContent("test", certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	config := apiserver.Config{Authenticator: authentication, Address: "127.0.0.1:0", Certificate: certificate, Debug: answersWhoMay,
		Authorizer: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			if a.GetUser().GetName() == "u" && a.GetResource() == "placements" {
				return authorizer.DecisionAllow, "", nil
			}
			return authorizer.DecisionNoOpinion, "", nil
		})}
	server, err := config.NewDebugServer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: ca.pool(), ServerName: "gateway.test"}}}
	for name, c := range map[string]struct {
		path, user string
		code       int
	}{
		"a user with the right":          {"/debug/placements/a/b", "u", http.StatusOK},
		"a user without the right":       {"/debug/placements/a/b", "v", http.StatusForbidden},
		"an unauthenticated request":     {"/debug/placements/a/b", "", http.StatusUnauthorized},
		"a user with the right, metrics": {"/metrics", "u", http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+server.Address().String()+c.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.user != "" {
				request.Header.Set("X-Remote-User", c.user)
			}
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			wantCode(t, response, c.code)
		})
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := (apiserver.Config{Certificate: certificate}).NewDebugServer(t.Context()); err == nil {
		t.Error("a server without a handler is created")
	}
}
