// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"k8s.io/client-go/rest"
)

// A hub without ManagedClusters says 404 to who may see them, and 403 to agents: it has not given
// them that right.
func TestAHubThatShowsNoManagedClusterIsAskedForItAndWatchedForNothing(t *testing.T) {
	for _, answer := range []int{http.StatusForbidden, http.StatusNotFound} {
		ctx, end := context.WithCancel(t.Context())
		var asked []string
		hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.Method+" "+r.URL.String())
			w.WriteHeader(answer)
			end()
		}))
		err := (&agent{Config: &Config{}}).serveManagedNamespaces(ctx, &rest.Config{Host: hub.URL}, "edge")
		hub.Close() // It has answered all that was asked then.
		if want := []string{"GET /apis/cluster.open-cluster-management.io/v1/managedclusters/edge"}; err != nil || !slices.Equal(asked, want) {
			t.Errorf("answered with %d: asked for %q, want %q; %v", answer, asked, want, err)
		}
	}
}
