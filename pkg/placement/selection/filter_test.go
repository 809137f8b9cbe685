// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestFilter_LeavesOutKinds(t *testing.T) {
	secret, configMap := schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	ingress, class := schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}, schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1beta1", Kind: "IngressClass"}
	namespace := schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	tests := map[string]struct {
		skipped, allowed string
		out, in          []schema.GroupVersionKind
	}{
		"nothing":                 {"", "", nil, []schema.GroupVersionKind{secret, ingress, namespace}},
		"a group":                 {"networking.k8s.io", "", []schema.GroupVersionKind{ingress, class}, []schema.GroupVersionKind{secret}},
		"a version":               {"networking.k8s.io/v1beta1;", "", []schema.GroupVersionKind{class}, []schema.GroupVersionKind{ingress}},
		"kinds":                   {"networking.k8s.io/v1/Ingress,IngressClass", "", []schema.GroupVersionKind{ingress}, []schema.GroupVersionKind{class}},
		"kinds of the core group": {"v1/secret,v1/Pod; networking.k8s.io", "", []schema.GroupVersionKind{secret, ingress}, []schema.GroupVersionKind{configMap}},
		"all of the core group":   {"v1", "", []schema.GroupVersionKind{secret, configMap}, []schema.GroupVersionKind{namespace, ingress}},
		"only some kinds":         {"", "v1/ConfigMap;networking.k8s.io/v1", []schema.GroupVersionKind{secret, class}, []schema.GroupVersionKind{configMap, ingress, namespace}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f, err := ParseFilter(tc.skipped, tc.allowed, "")
			if err != nil {
				t.Fatal(err)
			}
			for _, gvk := range tc.out {
				if !f.leavesOut(gvk) {
					t.Errorf("%s is placed", gvk)
				}
			}
			for _, gvk := range tc.in {
				if f.leavesOut(gvk) {
					t.Errorf("%s is not placed", gvk)
				}
			}
		})
	}
	for _, wrong := range [][2]string{{"a/b/c/d", ""}, {"a/b,c", ""}, {"a", "b"}} {
		if _, err := ParseFilter(wrong[0], wrong[1], ""); err == nil {
			t.Errorf("%v is accepted", wrong)
		}
	}
	f, err := ParseFilter("", "", "a,b;c")
	if err != nil || !f.namespaces["a"] || !f.namespaces["b"] || !f.namespaces["c"] {
		t.Errorf("namespaces = %v, %v", f.namespaces, err)
	}
}
