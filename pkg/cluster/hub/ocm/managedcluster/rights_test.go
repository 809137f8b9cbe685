// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package managedcluster

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/test/support/build"
)

// Permissions of clusters waited among all other writes of a hub that was placing. They have a
// client of their own, and what an agent can cause repeatedly, such as writes of its status, does
// not use it.
func TestReconciler_WritesPermissionsThroughRights(t *testing.T) {
	known := build.Scheme(clusterv1.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme)
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
		Name: "edge", Finalizers: []string{clusterv1.ResourceCleanupFinalizer, clusterv1.GarbageFinalizer},
	}}
	cluster.Spec.HubAcceptsClient = true
	hub := fake.NewClientBuilder().WithScheme(known).WithObjects(cluster).WithStatusSubresource(cluster).Build()
	var rights, others []string
	noting := func(to *[]string) client.Client {
		note := func(object client.Object) { *to = append(*to, fmt.Sprintf("%T", object)) }
		return interceptor.NewClient(hub, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
				note(object)
				return c.Create(ctx, object, options...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
				note(object)
				return c.SubResource(sub).Patch(ctx, object, patch, options...)
			},
		})
	}
	r := &Reconciler{Clusters: noting(&others), Client: noting(&others), Rights: noting(&rights), Live: hub, Objects: build.CacheOf(hub), Recorder: events.NewFakeRecorder(9)}
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(cluster)}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"*v1.Namespace", "*v1.ClusterRole", "*v1.ClusterRoleBinding", "*v1.RoleBinding", "*v1.RoleBinding"}; !slices.Equal(rights, want) {
		t.Errorf("by its own way went %v, want %v", rights, want)
	}
	if want := []string{"*v1.ManagedCluster"}; !slices.Equal(others, want) {
		t.Errorf("with all else went %v, want %v", others, want)
	}
}

// Each of two controllers wrote the status of our member, and a third write followed from their
// conflict. The hub's knowledge is now written together with the acceptance.
func TestReconciler_WritesReportTogetherWithAcceptance(t *testing.T) {
	known := build.Scheme(clusterv1.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme)
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
		Name: "edge", Finalizers: []string{clusterv1.ResourceCleanupFinalizer, clusterv1.GarbageFinalizer},
	}}
	cluster.Spec.HubAcceptsClient = true
	writes := 0
	hub := fake.NewClientBuilder().WithScheme(known).WithObjects(cluster).WithStatusSubresource(cluster).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			writes++
			return c.SubResource(sub).Patch(ctx, object, patch, options...)
		},
	}).Build()
	asked := 0
	r := &Reconciler{
		Clusters: hub, Client: hub, Rights: hub, Live: hub, Objects: build.CacheOf(hub), Recorder: events.NewFakeRecorder(9),
		Report: func(context.Context, *clusterv1.ManagedCluster) (func(*clusterv1.ManagedClusterStatus), error) {
			asked++
			return func(status *clusterv1.ManagedClusterStatus) { status.Version.Kubernetes = "v1.36.3" }, nil
		},
	}
	for range 2 {
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(cluster)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
		t.Fatal(err)
	}
	if !meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ConditionHubAccepted) || cluster.Status.Version.Kubernetes != "v1.36.3" {
		t.Errorf("its status is %+v", cluster.Status)
	}
	if writes != 1 || asked != 1 {
		t.Errorf("its status was written %d times, and asked for %d times", writes, asked)
	}
}
