// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	multiclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/multicluster/v1alpha1"
)

func TestReconciler_ReleasesLeavingMember(t *testing.T) {
	for manager, profileStays := range map[string]bool{multiclusterv1alpha1.ClusterManager: false, "another": true} {
		t.Run(manager, func(t *testing.T) {
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{clusterv1beta1.AddToScheme, multiclusterv1alpha1.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			leaving := metav1.Now()
			mc := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "member-1", DeletionTimestamp: &leaving,
				Finalizers: []string{clusterv1beta1.ClusterProfileFinalizer, clusterv1beta1.MemberClusterFinalizer}}}
			published := &multiclusterv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-system", Name: "member-1"}}
			published.Spec.ClusterManager.Name = manager
			hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(mc, published).Build()

			r := &Reconciler{Client: hub, Namespace: "fleet-system", HubURL: "https://hub.example.org"}
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(mc)}); err != nil {
				t.Fatal(err)
			}
			if err := hub.Get(t.Context(), client.ObjectKeyFromObject(mc), mc); err != nil {
				t.Fatal(err)
			}
			if len(mc.Finalizers) != 1 || mc.Finalizers[0] != clusterv1beta1.MemberClusterFinalizer {
				t.Errorf("finalizers of the member: %v", mc.Finalizers)
			}
			err := hub.Get(t.Context(), client.ObjectKeyFromObject(published), published)
			if client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			if stays := !apierrors.IsNotFound(err); stays != profileStays {
				t.Errorf("the profile stays: %t, want %t", stays, profileStays)
			}
		})
	}
}

func TestReconciler_PublishesMemberAfterFirstReport(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1beta1.AddToScheme, multiclusterv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	mc := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "member-1"}}
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(mc).WithStatusSubresource(mc, &multiclusterv1alpha1.ClusterProfile{}).Build()
	r := &Reconciler{Client: hub, Namespace: "fleet-system", HubURL: "https://hub.example.org"}
	published := func() bool {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(mc)}); err != nil {
			t.Fatal(err)
		}
		err := hub.Get(t.Context(), client.ObjectKey{Namespace: "fleet-system", Name: "member-1"}, &multiclusterv1alpha1.ClusterProfile{})
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return err == nil
	}
	if published() {
		t.Error("a member that nobody has heard of is published")
	}
	mc.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: metav1.Now()}}
	if err := hub.Status().Update(t.Context(), mc); err != nil {
		t.Fatal(err)
	}
	if !published() {
		t.Error("a member that has reported is not published")
	}
}
