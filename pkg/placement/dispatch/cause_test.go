// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

const (
	causeKey  = placementv1beta1.DeletionCauseAnnotation
	policyKey = placementv1beta1.DeletePolicyAnnotation
)

func TestFinalize_AnnotatesWorksWithDeletionCause(t *testing.T) {
	deleted := metav1.ObjectMeta{Name: "p", Finalizers: []string{"x/y"}, DeletionTimestamp: new(metav1.Now())}
	changed := map[string]string{causeKey: placementv1beta1.DeletionPlacementChanged}
	gone := map[string]string{causeKey: placementv1beta1.DeletionPlacementDeleted}
	strategy := func(policy placementv1beta1.DeletePropagationPolicy) client.Object {
		p := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
		p.Spec.Strategy.DeleteStrategy = &placementv1beta1.DeleteStrategy{PropagationPolicy: policy}
		return p
	}
	retained := map[string]string{causeKey: placementv1beta1.DeletionNone}
	exists := func() client.Object {
		return &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	}
	unscheduled := func(b *placementv1beta1.ClusterResourceBinding) { b.Spec.State = placementv1beta1.BindingUnscheduled }
	recorded := func(cause string) func(*placementv1beta1.ClusterResourceBinding) {
		return func(b *placementv1beta1.ClusterResourceBinding) {
			reconcileutil.SetAnnotation(b, placementv1beta1.DeletionCauseAnnotation, cause)
		}
	}
	cases := map[string]struct {
		placement client.Object
		binding   func(*placementv1beta1.ClusterResourceBinding)
		has, want map[string]string
		// undefined is set if the definition of placements is being deleted.
		undefined bool
	}{
		"Work has no cause yet":                {has: retained, want: gone},
		"placement no longer selects":          {placement: exists(), binding: unscheduled, has: retained, want: changed},
		"placement no longer selects, old":     {placement: exists(), binding: unscheduled, want: changed},
		"placement is evicted":                 {placement: exists(), binding: recorded(placementv1beta1.DeletionPlacementChanged), has: retained, want: changed},
		"placement is being deleted":           {placement: &placementv1beta1.ClusterResourcePlacement{ObjectMeta: deleted}, want: gone},
		"placement is deleted":                 {want: gone},
		"placement was deleted and re-created": {placement: exists(), binding: recorded(placementv1beta1.DeletionPlacementDeleted), want: gone},
		"a user deleted the binding":           {placement: exists(), has: retained, want: retained},
		"a user deleted the binding, old":      {placement: exists(), want: retained},
		"the definition is deleted":            {undefined: true, has: retained, want: retained},
		"the definition is deleted, recorded":  {binding: recorded(placementv1beta1.DeletionNone), has: retained, want: retained},
		"placement with policy Abandon":        {placement: strategy(placementv1beta1.AbandonPlaced), binding: unscheduled, want: changed},
		"placement with policy Delete": {placement: strategy(placementv1beta1.DeletePlaced), binding: unscheduled,
			want: map[string]string{causeKey: placementv1beta1.DeletionPlacementChanged, policyKey: placementv1beta1.DeletePolicyDelete}},
		"a user deleted the binding, with policy Delete": {placement: strategy(placementv1beta1.DeletePlaced), want: retained},
		"deletion after a change":                        {binding: unscheduled, has: changed, want: gone},
		"change after a resource left": {placement: exists(), binding: unscheduled,
			has: map[string]string{causeKey: placementv1beta1.DeletionResourceRemoved}, want: map[string]string{causeKey: placementv1beta1.DeletionResourceRemoved}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := binding()
			b.Labels = map[string]string{placementv1beta1.ParentPlacementLabel: "p"}
			b.Finalizers, b.DeletionTimestamp = []string{placementv1beta1.WorkCleanupFinalizer}, new(metav1.Now())
			if tc.binding != nil {
				tc.binding(b)
			}
			definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "clusterresourceplacements.placement.kubernetes-fleet.io"}}
			if tc.undefined {
				definition.Finalizers, definition.DeletionTimestamp = []string{"x/y"}, new(metav1.Now())
			}
			work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1beta1.MemberNamespace("m"), Name: "p-work",
				Finalizers: []string{placementv1beta1.WorkCleanupFinalizer}, Annotations: tc.has, Labels: map[string]string{placementv1beta1.ParentBindingLabel: b.Name}}}
			there := []client.Object{definition, b, work, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "m"}}}
			if tc.placement != nil {
				there = append(there, tc.placement)
			}
			hub := fake.NewClientBuilder().WithScheme(hubScheme(t)).WithObjects(there...).Build()
			r := &Reconciler{Client: hub, Live: hub}
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)}); err != nil {
				t.Fatal(err)
			}
			if err := hub.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, work.Annotations); diff != "" || work.DeletionTimestamp == nil {
				t.Errorf("deleted: %v, annotations (-want +got):\n%s", work.DeletionTimestamp, diff)
			}
		})
	}
}

// The namespace controller deletes bindings before their placement.
func TestLivePlacement_IsDeletedWithItsNamespace(t *testing.T) {
	scheme := hubScheme(t)
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	placement := &placementv1beta1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
	for deleted, namespace := range map[bool]*corev1.Namespace{
		false: {ObjectMeta: metav1.ObjectMeta{Name: "ns", UID: "1"}},
		true:  {ObjectMeta: metav1.ObjectMeta{Name: "ns", UID: "1", Finalizers: []string{"x/y"}, DeletionTimestamp: new(metav1.Now())}},
	} {
		hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(placement, namespace).Build()
		r := &Reconciler{Client: hub, Live: hub}
		found, err := r.livePlacement(t.Context(), client.ObjectKeyFromObject(placement))
		if err != nil {
			t.Fatal(err)
		}
		if (found == nil) != deleted {
			t.Errorf("namespace deleted: %t, placement: %v", deleted, found)
		}
	}
}
