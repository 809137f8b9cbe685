// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"net/http"
	"testing"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"fleetgate.io/fleetgate/pkg/apiserver"
)

// Who may debug what is for the answerer to find out: the path alone is nobody's right, and
// needs none.
func TestDebugRequestsReachWhoAnswersThem(t *testing.T) {
	g := newGateway(t, nil, func(c *apiserver.Config) {
		c.Debug = func(may authorizer.UnconditionalAuthorizer) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				caller, _ := apirequest.UserFrom(r.Context())
				if decision, _, _ := may.Authorize(r.Context(), authorizer.AttributesRecord{User: caller, Resource: "placements", ResourceRequest: true}); decision != authorizer.DecisionAllow {
					w.WriteHeader(http.StatusForbidden)
					return
				}
				_, _ = w.Write([]byte("for " + caller.GetName()))
			})
		}
	})
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
