// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the aggregated group through which the hub's API server sends
// reviews. It has no resource: nothing in it can be listed or stored.
var GroupVersion = schema.GroupVersion{Group: "webhook.fleetgate.io", Version: "v1alpha1"}

// groupPath is where aggregated servers say what they have.
func groupPath() string { return "/apis/" + GroupVersion.String() }

// AggregatedPath is where the handler that is registered under a path is asked by way
// of the group. The path begins with a slash.
func AggregatedPath(path string) string { return groupPath() + "/reviews" + path }

// serveGroup tells the hub's API server, which asks for it to see whether the group is
// available, that there is nothing to discover.
func serveGroup(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(metav1.APIResourceList{ // It goes to a peer that may be gone.
		TypeMeta:     metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
		GroupVersion: GroupVersion.String(),
		APIResources: []metav1.APIResource{},
	})
}
