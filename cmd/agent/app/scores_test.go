// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"fleetgate.io/fleetgate/cmd/agent/app/options"
)

// A hub can serve ManagedClusters without scores, which are for Placements.
func TestScores_WaitUntilTheHubServesTheKind(t *testing.T) {
	missing := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Details: &metav1.StatusDetails{Name: "resource-usage-score", Kind: "addonplacementscores"}}
	tests := map[string]struct {
		answer func(http.ResponseWriter)
		ready  bool
	}{
		"the kind is not served": {func(w http.ResponseWriter) { http.Error(w, "404 page not found", http.StatusNotFound) }, false},
		"there is no right":      {func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) }, false},
		"nothing was written": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(missing)
		}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			asked := ""
			hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = r.URL.Path
				tc.answer(w)
			}))
			defer hub.Close()
			a := &agent{Config: &options.Config{}}
			part, err := a.scores(&rest.Config{Host: hub.URL}, "edge")
			if err != nil {
				t.Fatal(err)
			}
			if err := part.try(t.Context()); (err == nil) != tc.ready {
				t.Errorf("got %v, want that it is ready: %v", err, tc.ready)
			}
			if want := "/apis/cluster.open-cluster-management.io/v1alpha1/namespaces/edge/addonplacementscores/resource-usage-score"; asked != want {
				t.Errorf("asked for %s, want %s", asked, want)
			}
		})
	}
}
