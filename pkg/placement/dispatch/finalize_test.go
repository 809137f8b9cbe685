// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/rollout"
)

func hubScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1beta1.AddToScheme, placementv1beta1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// A rollout waited indefinitely for a member that had left, or to which nothing had been sent, to
// become available, before it removed the binding.
func TestReconcile_DroppedBindingFailsWithoutMemberOrWorks(t *testing.T) {
	member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
	work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: clusterv1beta1.MemberNamespace("m"), Name: "p-work", Labels: map[string]string{placementv1beta1.ParentBindingLabel: "p-m-0"},
	}}
	settledWork := work.DeepCopy()
	for _, kind := range []string{placementv1beta1.ConditionApplied, placementv1beta1.ConditionAvailable} {
		meta.SetStatusCondition(&settledWork.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Well"})
	}
	cases := map[string]struct {
		there  []client.Object
		failed bool
	}{
		"member has left":  {[]client.Object{settledWork}, true},
		"nothing was sent": {[]client.Object{member}, true},
		"member has Works": {[]client.Object{member, settledWork}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := binding()
			b.Spec.State = placementv1beta1.BindingUnscheduled
			hub := fake.NewClientBuilder().WithScheme(hubScheme(t)).WithObjects(append(tc.there, b)...).WithStatusSubresource(b).
				WithIndex(work, worksByBinding, func(o client.Object) []string { return []string{o.GetLabels()[placementv1beta1.ParentBindingLabel]} }).Build()
			r := &Reconciler{Client: hub, Live: hub}
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)}); err != nil {
				t.Fatal(err)
			}
			if err := hub.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
				t.Fatal(err)
			}
			if got := rollout.Failed(b); got != tc.failed {
				t.Errorf("Failed() = %t, want %t: %+v", got, tc.failed, b.Status.Conditions)
			}
		})
	}
}

// Placed resources of a member that left were removed there if the hub's garbage collector deleted the
// Work before the agent knew that the member was leaving.
func TestFinalize_AnnotatesWorksOfLeavingMember(t *testing.T) {
	scheme := hubScheme(t)
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
		t.Fatalf("the Work was deleted before its namespace: %v", err)
	}
	if got := work.Annotations[placementv1beta1.DeletePolicyAnnotation]; got != placementv1beta1.DeletePolicyAbandon {
		t.Errorf("annotation = %q", got)
	}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(b), b); !apierrors.IsNotFound(err) {
		t.Errorf("the binding still exists: %v", err)
	}
}
