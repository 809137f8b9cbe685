// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"fleetgate.io/fleetgate/cmd/agent/app/options"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/work/engine"
)

// Regression: an idle agent sent three requests each time to a hub without Open Cluster
// Management's kinds, two of them about ManifestWorks.
func TestDiscoverParts_OnlyDiscoversGroupsOfHubWithoutThem(t *testing.T) {
	const addOns = "GET /apis/addon.open-cluster-management.io/v1alpha1/namespaces/edge/managedclusteraddons"
	const groups, cluster = "GET /apis", "GET /apis/cluster.open-cluster-management.io/v1/managedclusters/edge"
	tests := map[string]struct {
		served []string
		want   []string
	}{
		"add-ons are served, and not shown":                                       {served: []string{addonv1alpha1.GroupName}, want: []string{groups, addOns}},
		"neither group is served, so that there is nothing to ask for":            {want: []string{groups}},
		"another group of the same project says nothing":                          {served: []string{"policy.open-cluster-management.io"}, want: []string{groups}},
		"the group is served, so that the cluster may be there, but is not shown": {served: []string{clusterv1.GroupName}, want: []string{groups, cluster}},
	}
	for reason, tc := range tests {
		t.Run(reason, func(t *testing.T) {
			var asked []string
			hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.Method+" "+r.URL.Path)
				if r.URL.Path != "/apis" {
					w.WriteHeader(http.StatusForbidden)
					return
				}
				list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
				for _, name := range tc.served {
					list.Groups = append(list.Groups, metav1.APIGroup{Name: name})
				}
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(list)
			}))
			ready, waiting, err := discoverParts(t.Context(), restClientOf(t, hub.URL), partsOf(t, hub.URL))
			hub.Close() // It has answered all that was asked then.
			if len(ready) != 0 || len(waiting) != 3 || err == nil {
				t.Errorf("%d parts are served and %d wait, for %v", len(ready), len(waiting), err)
			}
			if diff := cmp.Diff(tc.want, asked); diff != "" {
				t.Errorf("what the hub was asked (-want +got):\n%s", diff)
			}
		})
	}
}

func partsOf(t *testing.T, hub string) []hubPart {
	t.Helper()
	a, config := &agent{Config: &options.Config{}}, &rest.Config{Host: hub}
	parts, err := a.hubParts(&engine.Member{}, config, "edge", keeping{})
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

func restClientOf(t *testing.T, hub string) rest.Interface {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: hub})
	if err != nil {
		t.Fatal(err)
	}
	return client.RESTClient()
}

// A part must not wait for the prerequisites of another.
func TestDiscoverParts_ServesPartWhileAnotherWaits(t *testing.T) {
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(metav1.APIGroupList{
			TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{{Name: clusterv1.GroupName}, {Name: workv1.GroupName}},
		})
	}))
	defer hub.Close()
	refused := errors.New("not shown")
	shown := hubPart{group: clusterv1.GroupName, try: func(context.Context) error { return nil }}
	hidden := hubPart{group: workv1.GroupName, try: func(context.Context) error { return refused }}
	ready, waiting, err := discoverParts(t.Context(), restClientOf(t, hub.URL), []hubPart{hidden, shown})
	if len(ready) != 1 || ready[0].group != clusterv1.GroupName || len(waiting) != 1 || !errors.Is(err, refused) {
		t.Errorf("served %v, waiting %v for %v", ready, waiting, err)
	}
}

func TestAwaitHub_BacksOffToLastRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithTimeout(t.Context(), time.Hour)
		defer end()
		var asked []time.Duration
		begin := time.Now()
		if awaitHub(ctx, hubLastRetry, func() error {
			asked = append(asked, time.Since(begin))
			return errors.New("nothing there")
		}) {
			t.Error("awaitHub returned true without success")
		}
		if len(asked) < 2 || asked[0] != 0 || asked[1] != hubFirstRetry {
			t.Errorf("first asked at %v", asked)
		}
		for i := len(asked) - 5; i < len(asked); i++ {
			if pause := asked[i] - asked[i-1]; pause != hubLastRetry {
				t.Errorf("asked again after %v, want %v", pause, hubLastRetry)
			}
		}
	})
}
