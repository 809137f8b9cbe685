// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// What was placed on a member that left was removed there, when the hub's garbage
// collector deleted the Work before the agent had heard that it was to leave.
func TestWorksOfAMemberThatLeavesAreAbandonedBeforeTheirBindingGoes(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1beta1.AddToScheme, placementv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	b := binding()
	b.Finalizers, b.DeletionTimestamp = []string{placementv1beta1.WorkCleanupFinalizer}, new(metav1.Now())
	work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: clusterv1beta1.MemberNamespace("m"), Name: "p-work", Labels: map[string]string{placementv1beta1.ParentBindingLabel: b.Name},
	}}
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(b, work).Build()
	r := &Reconciler{Client: hub, Live: hub}
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)}); err != nil {
		t.Fatal(err)
	}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
		t.Fatalf("the Work goes with its member's namespace only: %v", err)
	}
	if got := work.Annotations[placementv1beta1.DeletePolicyAnnotation]; got != placementv1beta1.DeletePolicyAbandon {
		t.Errorf("the agent is told %q", got)
	}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(b), b); !apierrors.IsNotFound(err) {
		t.Errorf("the binding is still there: %v", err)
	}
}
