// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

func TestTakes(t *testing.T) {
	blue := &metav1.LabelSelector{MatchLabels: map[string]string{"color": "blue"}}
	namespaceTerm := func(name string, selector *metav1.LabelSelector, scope placementv1beta1.SelectionScope) placementv1beta1.ResourceSelectorTerm {
		return placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", Name: name, LabelSelector: selector, SelectionScope: scope}
	}
	services := placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Service", Name: "web"}
	blueServices := placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Service", LabelSelector: blue}
	nodes := placementv1beta1.ResourceSelectorTerm{Group: "g.example", Version: "v1", Kind: "Wide", Name: "web"}
	service := &metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"color": "blue"}}
	for name, c := range map[string]struct {
		namespace string
		terms     []placementv1beta1.ResourceSelectorTerm
		kind      schema.GroupKind
		object    *metav1.ObjectMeta
		want      bool
	}{
		"by name":                        {"shop", []placementv1beta1.ResourceSelectorTerm{services}, schema.GroupKind{Kind: "Service"}, service, true},
		"by label":                       {"shop", []placementv1beta1.ResourceSelectorTerm{nodes, blueServices}, schema.GroupKind{Kind: "Service"}, service, true},
		"of another label":               {"shop", []placementv1beta1.ResourceSelectorTerm{blueServices}, schema.GroupKind{Kind: "Service"}, &metav1.ObjectMeta{Namespace: "shop", Name: "web"}, false},
		"of another name":                {"shop", []placementv1beta1.ResourceSelectorTerm{services}, schema.GroupKind{Kind: "Service"}, &metav1.ObjectMeta{Namespace: "shop", Name: "db"}, false},
		"of another group":               {"shop", []placementv1beta1.ResourceSelectorTerm{services}, schema.GroupKind{Group: "g.example", Kind: "Service"}, service, false},
		"of another namespace":           {"park", []placementv1beta1.ResourceSelectorTerm{services}, schema.GroupKind{Kind: "Service"}, service, false},
		"without namespace, namespaced":  {"shop", []placementv1beta1.ResourceSelectorTerm{nodes}, schema.GroupKind{Group: "g.example", Kind: "Wide"}, &metav1.ObjectMeta{Name: "web"}, false},
		"without namespace":              {"", []placementv1beta1.ResourceSelectorTerm{nodes}, schema.GroupKind{Group: "g.example", Kind: "Wide"}, &metav1.ObjectMeta{Name: "web"}, true},
		"namespaced kind, no namespace":  {"", []placementv1beta1.ResourceSelectorTerm{services}, schema.GroupKind{Kind: "Service"}, service, false},
		"single in a selected namespace": {"", []placementv1beta1.ResourceSelectorTerm{services, namespaceTerm("shop", nil, placementv1beta1.NamespaceWithResourceSelectors)}, schema.GroupKind{Kind: "Service"}, service, true},
		"other in a selected namespace":  {"", []placementv1beta1.ResourceSelectorTerm{namespaceTerm("shop", nil, placementv1beta1.NamespaceWithResourceSelectors)}, schema.GroupKind{Kind: "Service"}, service, false},
		"in a namespace by name":         {"", []placementv1beta1.ResourceSelectorTerm{namespaceTerm("shop", nil, "")}, schema.GroupKind{Kind: "Service"}, service, true},
		"in another namespace by name":   {"", []placementv1beta1.ResourceSelectorTerm{namespaceTerm("park", nil, "")}, schema.GroupKind{Kind: "Service"}, service, false},
		"in a namespace without it":      {"", []placementv1beta1.ResourceSelectorTerm{namespaceTerm("shop", nil, placementv1beta1.NamespaceOnly)}, schema.GroupKind{Kind: "Service"}, service, false},
		"in a namespace by label":        {"", []placementv1beta1.ResourceSelectorTerm{namespaceTerm("", blue, "")}, schema.GroupKind{Kind: "Service"}, service, true},
		"in a namespace of other labels": {"", []placementv1beta1.ResourceSelectorTerm{namespaceTerm("", blue, "")}, schema.GroupKind{Kind: "Service"}, &metav1.ObjectMeta{Namespace: "park", Name: "web"}, false},
		"in a namespace that is gone":    {"", []placementv1beta1.ResourceSelectorTerm{namespaceTerm("", nil, "")}, schema.GroupKind{Kind: "Service"}, &metav1.ObjectMeta{Namespace: "gone", Name: "web"}, false},
		"the namespace":                  {"", []placementv1beta1.ResourceSelectorTerm{namespaceTerm("", blue, "")}, namespaceKind, &metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"color": "blue"}}, true},
		"no selectors":                   {"", nil, schema.GroupKind{Kind: "Service"}, service, false},
	} {
		got, err := Takes(c.namespace, c.terms, c.kind, c.object, func(name string) (map[string]string, bool, error) {
			return map[string]map[string]string{"shop": {"color": "blue"}, "park": {"color": "red"}}[name], name != "gone", nil
		})
		if err != nil || got != c.want {
			t.Errorf("%s: got %t, %v, want %t", name, got, err, c.want)
		}
	}
}

func TestTakes_FailsIfANamespaceCannotBeRead(t *testing.T) {
	terms := []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace"}}
	taken, err := Takes("", terms, schema.GroupKind{Kind: "Service"}, &metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		func(string) (map[string]string, bool, error) { return nil, true, errors.New("no answer") })
	if taken || err == nil {
		t.Errorf("got %t, %v, want an error", taken, err)
	}
}
