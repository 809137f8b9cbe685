// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/kube/crdwait"
)

// Tenancy returns the clusters that a namespace's ManagedClusterSetBindings allow.
type Tenancy interface {
	Within(ctx context.Context, namespace string) (sets.Set[string], error)
}

// boundKinds are the kinds that say which clusters a namespace may use. A hub without them has no
// such limit: there the writers of PlacementDecisions decide.
func boundKinds() map[string]schema.GroupVersionKind {
	return map[string]schema.GroupVersionKind{
		"managedclusters.cluster.open-cluster-management.io":           clusterv1.GroupVersion.WithKind("ManagedCluster"),
		"managedclustersets.cluster.open-cluster-management.io":        clusterv1beta2.GroupVersion.WithKind("ManagedClusterSet"),
		"managedclustersetbindings.cluster.open-cluster-management.io": clusterv1beta2.GroupVersion.WithKind("ManagedClusterSetBinding"),
	}
}

// limit applies the bindings: before the first reconciliation if the hub serves their kinds, or
// otherwise as soon as it does.
func (r *Reconciler) limit(mgr ctrl.Manager, c controller.Controller) error {
	if r.Tenancy == nil {
		return nil
	}
	served := true
	names := make([]string, 0, len(boundKinds()))
	for name, kind := range boundKinds() {
		names = append(names, name)
		_, err := mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil && !meta.IsNoMatchError(err) {
			return fmt.Errorf("asking the hub for kind %s: %w", kind, err)
		}
		served = served && err == nil
	}
	if served {
		return r.watchBindings(mgr, c)
	}
	slices.Sort(names)
	return mgr.Add(&crdwait.Kinds{
		Manager: mgr, Names: names, Then: func(mgr ctrl.Manager) error { return r.watchBindings(mgr, c) },
		Missing: "The hub serves no ManagedClusterSetBindings; ManifestWorkReplicaSets deliver to every cluster that a PlacementDecision names",
	})
}

// watchBindings enables the limit, and reconciles sets when the clusters of their namespace change.
func (r *Reconciler) watchBindings(mgr ctrl.Manager, c controller.Controller) error {
	r.limited.Store(true)
	inNamespace := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, binding client.Object) []reconcile.Request {
		return r.sets(ctx, client.InNamespace(binding.GetNamespace()))
	})
	everywhere := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request { return r.sets(ctx) })
	// Each set is reconciled when the controller starts, after these caches are filled.
	later := predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList }}
	spec := predicate.And[client.Object](later, predicate.GenerationChangedPredicate{})
	for _, watched := range []source.Source{
		source.Kind[client.Object](mgr.GetCache(), &clusterv1beta2.ManagedClusterSetBinding{}, inNamespace, predicate.GenerationChangedPredicate{}),
		source.Kind[client.Object](mgr.GetCache(), &clusterv1beta2.ManagedClusterSet{}, everywhere, spec),
		source.Kind[client.Object](mgr.GetCache(), &clusterv1.ManagedCluster{}, everywhere, predicate.And[client.Object](later, predicate.LabelChangedPredicate{})),
	} {
		if err := c.Watch(watched); err != nil {
			return fmt.Errorf("watching which clusters namespaces may use: %w", err)
		}
	}
	return nil
}

func (r *Reconciler) sets(ctx context.Context, which ...client.ListOption) []reconcile.Request {
	return enqueue.All(ctx, r.Client, &workv1alpha1.ManifestWorkReplicaSetList{}, which...)
}

// confine keeps in the groups only the clusters that are bound to the namespace. Permission to
// write PlacementDecisions in a namespace must not give access to clusters that are not bound to
// it.
func (r *Reconciler) confine(ctx context.Context, namespace string, d *decided) error {
	if !r.limited.Load() || d.clusters.Len() == 0 {
		return nil
	}
	within, err := r.Tenancy.Within(ctx, namespace)
	if err != nil {
		return fmt.Errorf("finding the clusters that namespace %q may use: %w", namespace, err)
	}
	d.confine(within)
	return nil
}

// confine moves unbound clusters from the groups to outside. They stay among the clusters of the
// decision, so what they already have is neither changed nor deleted: a label or a binding that is
// lost by mistake must not remove workloads.
func (d *decided) confine(within sets.Set[string]) {
	outside := d.clusters.Difference(within)
	if outside.Len() == 0 {
		return
	}
	d.outside = sets.List(outside)
	for i := range d.groups {
		d.groups[i].Clusters = slices.DeleteFunc(d.groups[i].Clusters, outside.Has)
	}
}

// namedOutside limits the clusters in a message.
const namedOutside = 5

// unbound says which clusters of a Placement are not bound to its namespace, and the remedy.
func unbound(placement string, outside []string) string {
	return fmt.Sprintf("Placement %q names clusters that are in no ManagedClusterSet bound to this namespace, which get nothing new: %s. "+
		"Bind a set that has them, or take them out of the PlacementDecisions", placement, refusal.Names(outside, namedOutside))
}
