// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var all = metav1.Verbs{"get", "list", "watch"}

func group(name string, versions ...string) *metav1.APIGroup {
	g := &metav1.APIGroup{Name: name}
	for _, v := range versions {
		g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{Version: v})
	}
	g.PreferredVersion = g.Versions[0]
	return g
}

func list(gv string, resources ...metav1.APIResource) *metav1.APIResourceList {
	return &metav1.APIResourceList{GroupVersion: gv, APIResources: resources}
}

func contentsOf(c *catalog) []string {
	var names []string
	for _, kind := range c.contents {
		names = append(names, kind.GVR().String())
	}
	return names
}

func TestCatalog(t *testing.T) {
	groups := []*metav1.APIGroup{group("", "v1"), group("autoscaling", "v2", "v1"), group("example.com", "v1")}
	lists := []*metav1.APIResourceList{
		list("v1",
			metav1.APIResource{Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: all},
			metav1.APIResource{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: all},
			metav1.APIResource{Name: "namespaces", Kind: "Namespace", Verbs: all},
			metav1.APIResource{Name: "bindings", Kind: "Binding", Namespaced: true, Verbs: metav1.Verbs{"create"}}),
		list("autoscaling/v1",
			metav1.APIResource{Name: "horizontalpodautoscalers", Kind: "HorizontalPodAutoscaler", Namespaced: true, Verbs: all},
			metav1.APIResource{Name: "olds", Kind: "Old", Namespaced: true, Verbs: all}),
		list("autoscaling/v2",
			metav1.APIResource{Name: "horizontalpodautoscalers", Kind: "HorizontalPodAutoscaler", Namespaced: true, Verbs: all},
			metav1.APIResource{Name: "horizontalpodautoscalers/status", Kind: "HorizontalPodAutoscaler", Namespaced: true, Verbs: all}),
		list("example.com/v1", metav1.APIResource{Name: "things", Kind: "Thing", Namespaced: true, Verbs: all}),
	}
	c := newCatalog(groups, lists, nil, nil)
	want := []string{
		"/v1, Resource=configmaps", "autoscaling/v1, Resource=olds",
		"autoscaling/v2, Resource=horizontalpodautoscalers", "example.com/v1, Resource=things",
	}
	if diff := cmp.Diff(want, contentsOf(c)); diff != "" {
		t.Errorf("contents (-want +got):\n%s", diff)
	}
	if _, ok := c.byKind[schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "HorizontalPodAutoscaler"}]; !ok {
		t.Error("only the preferred version can be selected by name")
	}

	t.Run("unreadable group keeps its kinds", func(t *testing.T) {
		down := map[schema.GroupVersion]error{{Group: "example.com", Version: "v1"}: errors.New("down")}
		after := newCatalog(groups[:2], lists[:3], down, c)
		if diff := cmp.Diff(want, contentsOf(after)); diff != "" {
			t.Errorf("contents (-want +got):\n%s", diff)
		}
	})
	t.Run("removed group loses its kinds", func(t *testing.T) {
		after := newCatalog(groups[:2], lists[:3], nil, c)
		if diff := cmp.Diff(want[:3], contentsOf(after)); diff != "" {
			t.Errorf("contents (-want +got):\n%s", diff)
		}
	})
}
