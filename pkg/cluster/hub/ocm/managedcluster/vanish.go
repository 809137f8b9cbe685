// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package managedcluster

import (
	"context"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

// vanished are the clusters whose ManagedClusters were seen being deleted, until nothing of them is
// left. The zero value is ready for use.
type vanished struct {
	mu       sync.Mutex // guards clusters
	clusters map[string]bool
}

// watch records deleted ManagedClusters before they are reconciled.
func (v *vanished) watch(then handler.EventHandler) handler.EventHandler {
	return handler.Funcs{DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		v.note(e.Object.GetName())
		then.Delete(ctx, e, q)
	}}
}

func (v *vanished) note(cluster string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.clusters == nil {
		v.clusters = map[string]bool{}
	}
	v.clusters[cluster] = true
}

func (v *vanished) has(cluster string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.clusters[cluster]
}

func (v *vanished) forget(cluster string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.clusters, cluster)
}

// vanish removes what is left of a cluster without a ManagedCluster. Usually that is nothing: it is
// for one whose finalizers somebody removed by hand. Its permissions end at once. Its orders are
// deleted only if the deletion of the ManagedCluster was seen, or had begun: a hub that is being
// restored may have orders before their ManagedCluster.
func (r *Reconciler) vanish(ctx context.Context, cluster string) (ctrl.Result, error) {
	had, err := r.hasRights(ctx, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !had {
		r.vanished.forget(cluster)
		return ctrl.Result{}, nil
	}
	begun, err := r.isCleaningUp(ctx, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !begun && !r.vanished.has(cluster) {
		_, err := r.endRights(ctx, cluster)
		return ctrl.Result{}, err
	}
	remaining, err := r.leaveNamespace(ctx, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}})
	if err != nil || remaining == "" {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: lookAgain}, nil
}

// hasRights is true if any object grants, or has granted, permissions to a cluster's agents.
func (r *Reconciler) hasRights(ctx context.Context, cluster string) (bool, error) {
	if isSharedRole(RolePrefix + cluster) {
		return false, nil
	}
	for _, object := range []client.Object{
		clusterRole(cluster, false), clusterRoleBinding(cluster, nil), registrationBinding(cluster, nil), workBinding(cluster, nil), scoreBinding(cluster, nil),
		reportRole(cluster, false), reportBinding(cluster, nil),
	} {
		err := r.Objects.Get(ctx, client.ObjectKeyFromObject(object), emptyLike(object))
		if client.IgnoreNotFound(err) != nil {
			return false, err
		}
		if err == nil {
			return true, nil
		}
	}
	return false, nil
}

// isCleaningUp is true if the permission to apply works is being deleted: it waits for works to be
// gone.
func (r *Reconciler) isCleaningUp(ctx context.Context, cluster string) (bool, error) {
	binding := &rbacv1.RoleBinding{}
	err := r.Objects.Get(ctx, client.ObjectKeyFromObject(workBinding(cluster, nil)), binding)
	return err == nil && binding.DeletionTimestamp != nil, client.IgnoreNotFound(err)
}
