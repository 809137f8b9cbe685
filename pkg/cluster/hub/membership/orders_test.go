// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/cluster/hub/identity"
)

// ordersOf is a hub with orders in each namespace, of the kinds that it serves.
type ordersOf struct {
	client.Client
	served   map[string][]string
	released []string
	// namespace is its only one, and there is no MemberCluster.
	namespace *corev1.Namespace
}

func (h *ordersOf) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	namespace, ok := object.(*corev1.Namespace)
	if !ok || key.Name != h.namespace.Name {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	h.namespace.DeepCopyInto(namespace)
	return nil
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

// A user removed the finalizers of a MemberCluster whose agent never ran: its namespace was being
// deleted indefinitely.
func TestReconcile_ReleasesOrdersOfDeletedMember(t *testing.T) {
	now := metav1.Now()
	owned := func(kind, name string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: kind, Name: name, Controller: ptr.To(true)}}
	}
	for name, c := range map[string]struct {
		meta     metav1.ObjectMeta
		released bool
	}{
		"being deleted":               {metav1.ObjectMeta{DeletionTimestamp: &now, OwnerReferences: owned("MemberCluster", "m")}, true},
		"not being deleted":           {metav1.ObjectMeta{OwnerReferences: owned("MemberCluster", "m")}, false},
		"being deleted, of a user":    {metav1.ObjectMeta{DeletionTimestamp: &now}, false},
		"being deleted, of a product": {metav1.ObjectMeta{DeletionTimestamp: &now, OwnerReferences: owned("Tenant", "m")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c.meta.Name = "fleet-member-m"
			hub := &ordersOf{served: map[string][]string{"Work": {"a"}}, namespace: &corev1.Namespace{ObjectMeta: c.meta}}
			r := &Reconciler{Client: hub, Live: hub, Seats: identity.FleetSeats(), Orders: []schema.GroupVersionKind{{Kind: "Work"}}}
			result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "m"}})
			if err != nil {
				t.Fatal(err)
			}
			if released := len(hub.released) > 0; released != c.released || released != (result.RequeueAfter > 0) {
				t.Errorf("released %v, again after %s, want released: %t", hub.released, result.RequeueAfter, c.released)
			}
		})
	}
}
