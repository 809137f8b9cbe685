// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the aggregated group through which the hub's API server sends reviews. It has no
// resource: nothing in it can be listed or stored.
var GroupVersion = schema.GroupVersion{Group: "webhook.fleetgate.io", Version: "v1alpha1"}

// groupPath is the discovery path of the group.
func groupPath() string { return "/apis/" + GroupVersion.String() }

// AggregatedPath is the path through the group for the handler that is registered under path, which
// begins with a slash.
func AggregatedPath(path string) string { return groupPath() + "/reviews" + path }

// serveGroup answers discovery with an empty list. The hub's API server reads it to check whether
// the group is available.
func serveGroup(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(metav1.APIResourceList{ // The peer may have disconnected.
		TypeMeta:     metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
		GroupVersion: GroupVersion.String(),
		APIResources: []metav1.APIResource{},
	})
}
