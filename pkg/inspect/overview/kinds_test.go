// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestKindsOf_ListableKindsByName(t *testing.T) {
	listed, no := metav1.Verbs{"get", "list"}, metav1.Verbs{"create"}
	got := kindsOf([]*metav1.APIResourceList{
		{GroupVersion: "events.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "events", Namespaced: true, Verbs: listed}}},
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "events", Namespaced: true, Verbs: listed}, {Name: "nodes", Verbs: listed}, {Name: "bindings", Namespaced: true, Verbs: no},
		}},
		{GroupVersion: "a/b/c", APIResources: []metav1.APIResource{{Name: "wrong", Verbs: listed}}},
		{GroupVersion: "example.com/v1beta1", APIResources: []metav1.APIResource{{Name: "widgets", Verbs: listed}}},
	})
	want := []Kind{
		{Name: "events", Path: "api/v1", Resource: "events", Namespaced: true},
		{Name: "events.events.k8s.io", Path: "apis/events.k8s.io/v1", Resource: "events", Namespaced: true},
		{Name: "nodes", Path: "api/v1", Resource: "nodes"},
		{Name: "widgets.example.com", Path: "apis/example.com/v1beta1", Resource: "widgets"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
