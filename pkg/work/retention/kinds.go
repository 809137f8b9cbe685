// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import "k8s.io/apimachinery/pkg/runtime/schema"

// Kind is a kind of which agents retain objects: data, and containers of objects.
type Kind struct {
	Kind     string
	Resource schema.GroupVersionResource
	// Short is kubectl's short name.
	Short string
}

// Kinds are all of them.
func Kinds() []Kind {
	return []Kind{
		{"Namespace", schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "ns"},
		{"PersistentVolumeClaim", schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}, "pvc"},
		{"PersistentVolume", schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}, "pv"},
		{"CustomResourceDefinition", schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, "crd"},
	}
}
