// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ordersOf is a hub with orders in each namespace, of the kinds that it serves.
type ordersOf struct {
	client.Client
	served   map[string][]string
	released []string
}

func (h *ordersOf) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	kind := list.GetObjectKind().GroupVersionKind()
	names, ok := h.served[kind.Kind]
	if !ok {
		return &meta.NoKindMatchError{GroupKind: kind.GroupKind()}
	}
	where := (&client.ListOptions{}).ApplyOptions(options).Namespace
	list.(*metav1.PartialObjectMetadataList).Items = nil
	for _, name := range names {
		list.(*metav1.PartialObjectMetadataList).Items = append(list.(*metav1.PartialObjectMetadataList).Items,
			metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: where, Name: name, Finalizers: []string{"agent"}}})
	}
	return nil
}

func (h *ordersOf) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
	h.released = append(h.released, object.GetObjectKind().GroupVersionKind().Kind+" "+object.GetNamespace()+"/"+object.GetName())
	return nil
}

func TestReleaseOrders_AllKinds(t *testing.T) {
	kind := func(name string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: name}
	}
	hub := &ordersOf{served: map[string][]string{"Work": {"a", "b"}, "Errand": {"c"}, "Note": {"d"}}}
	r := &Reconciler{Client: hub, Live: hub, Orders: []schema.GroupVersionKind{kind("Work"), kind("NotServed"), kind("Errand")}}
	if err := r.releaseOrders(t.Context(), "fleet-member-m"); err != nil {
		t.Fatal(err)
	}
	want := []string{"Work fleet-member-m/a", "Work fleet-member-m/b", "Errand fleet-member-m/c"}
	if diff := cmp.Diff(want, hub.released); diff != "" {
		t.Errorf("released (-want +got):\n%s", diff)
	}
}
