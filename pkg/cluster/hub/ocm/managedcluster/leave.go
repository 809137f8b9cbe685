// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package managedcluster

import (
	"context"
	"fmt"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// ForceDeleteAnnotation with the value true on a ManagedCluster that is being deleted has
// what is left in its namespace go without its agent, once that had time to clean up. An
// administrator writes it for a cluster that does not exist any more.
const ForceDeleteAnnotation = "fleetgate.io/force-delete"

const (
	// lookAgain is the delay while objects are being deleted.
	lookAgain = 2 * time.Second
	// forceDeleteWait is how long an agent may clean up by default.
	forceDeleteWait = 15 * time.Minute
	// lastPriority is the highest value of the annotation that orders deletions.
	lastPriority = 100
)

// orders are the kinds of a cluster's orders in the order of their deletion: add-ons end before the
// works that they consist of.
func orders() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		AddOnKind(),
		worksKind(),
	}
}

// AddOnKind is the kind of Open Cluster Management's add-ons, which the hub need not serve.
func AddOnKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "addon.open-cluster-management.io", Version: "v1alpha1", Kind: "ManagedClusterAddOn"}
}

func worksKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "work.open-cluster-management.io", Version: "v1", Kind: "ManifestWork"}
}

// leave removes a cluster's permissions, deletes its orders, and releases it when nothing is left.
func (r *Reconciler) leave(ctx context.Context, cluster *clusterv1.ManagedCluster) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(cluster, clusterv1.ResourceCleanupFinalizer) && !controllerutil.ContainsFinalizer(cluster, clusterv1.GarbageFinalizer) {
		return ctrl.Result{}, nil
	}
	remaining, err := r.leaveNamespace(ctx, cluster)
	if err != nil {
		condition := metav1.Condition{Type: clusterv1.ConditionDeleting, Status: metav1.ConditionFalse, Reason: clusterv1.ReasonDeletingError, Message: err.Error()}
		if failed := r.writeCondition(ctx, cluster, condition); failed != nil {
			return ctrl.Result{}, failed
		}
		return ctrl.Result{}, err
	}
	if remaining != "" {
		condition := metav1.Condition{Type: clusterv1.ConditionDeleting, Status: metav1.ConditionFalse, Reason: clusterv1.ReasonResourceRemaining, Message: remaining}
		return ctrl.Result{RequeueAfter: lookAgain}, r.writeCondition(ctx, cluster, condition)
	}
	base := cluster.DeepCopy()
	controllerutil.RemoveFinalizer(cluster, clusterv1.ResourceCleanupFinalizer)
	controllerutil.RemoveFinalizer(cluster, clusterv1.GarbageFinalizer)
	if len(cluster.Finalizers) > 0 {
		// It stays because of others' finalizers: they see that nothing of this package is left.
		condition := metav1.Condition{Type: clusterv1.ConditionDeleting, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonNoResource, Message: "No cleaned resource in cluster ns."}
		if err := r.writeCondition(ctx, base, condition); err != nil {
			return ctrl.Result{}, err
		}
		cluster.ResourceVersion, cluster.Status = base.ResourceVersion, base.Status
	}
	if err := r.Clusters.Patch(ctx, cluster, reconcileutil.PatchFrom(base)); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("removing the finalizer of ManagedCluster %q: %w", cluster.Name, err)
	}
	return ctrl.Result{}, nil
}

// endRights removes the permissions of a cluster's agents except to clean up, and returns whether
// the cluster has a namespace.
func (r *Reconciler) endRights(ctx context.Context, cluster string) (bool, error) {
	if isSharedRole(RolePrefix + cluster) {
		return false, nil
	}
	for _, object := range []client.Object{clusterRoleBinding(cluster, nil), clusterRole(cluster, false)} {
		if err := r.delete(ctx, object); err != nil {
			return false, err
		}
	}
	if err := r.endReporting(ctx, cluster); err != nil {
		return false, err
	}
	own, err := r.ownsNamespace(ctx, cluster)
	if err != nil || !own {
		return false, err
	}
	if err := r.ensureScores(ctx, cluster, nil); err != nil {
		return false, err
	}
	return true, r.delete(ctx, registrationBinding(cluster, nil))
}

// leaveNamespace removes what the hub created for a cluster, and returns a sentence about what
// remains, or nothing. In a namespace that is not the cluster's it deletes nothing.
func (r *Reconciler) leaveNamespace(ctx context.Context, cluster *clusterv1.ManagedCluster) (string, error) {
	own, err := r.endRights(ctx, cluster.Name)
	if err != nil || !own {
		return "", err
	}
	for _, kind := range orders() {
		if remaining, err := r.deleteOrders(ctx, cluster, kind); remaining != "" || err != nil {
			return remaining, err
		}
	}
	if _, err := r.releaseWorkBinding(ctx, cluster.Name); err != nil {
		return "", err
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Name, Name: clusterv1.ClusterLease}}
	return "", wrap(client.IgnoreNotFound(r.Client.Delete(ctx, lease)), "deleting", "Lease", client.ObjectKeyFromObject(lease))
}

func (r *Reconciler) ownsNamespace(ctx context.Context, cluster string) (bool, error) {
	if refuseName(cluster) != nil {
		//lint:ignore nilerr It cannot have one: that is an answer.
		return false, nil
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	if err := r.Client.Get(ctx, client.ObjectKey{Name: cluster}, namespace); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return namespace.Labels[clusterv1.ClusterNameLabel] == cluster, nil
}

// deleteOrders deletes the objects of a kind that are next, and returns what remains.
func (r *Reconciler) deleteOrders(ctx context.Context, cluster *clusterv1.ManagedCluster, kind schema.GroupVersionKind) (string, error) {
	list, err := r.list(ctx, kind, cluster.Name)
	if err != nil || len(list) == 0 {
		return "", err
	}
	held, force := 0, r.mayForce(cluster)
	for i := range firstToGo(list) {
		object := &list[i]
		held += min(1, len(object.Finalizers))
		if object.DeletionTimestamp == nil {
			err = r.Client.Delete(ctx, object, client.Preconditions{UID: &object.UID})
		} else if force && len(object.Finalizers) > 0 {
			log.FromContext(ctx).Info("Removing the remaining objects of a deleted cluster without its agent", "kind", kind.Kind, "name", object.Name)
			base := object.DeepCopy()
			object.Finalizers = nil
			err = r.Client.Patch(ctx, object, reconcileutil.PatchFrom(base))
		}
		if client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("deleting %s %s/%s: %w", kind.Kind, object.Namespace, object.Name, err)
		}
	}
	message := fmt.Sprintf("%d of kind %s remain in namespace %s, of which finalizers hold %d at least", len(list), kind.Kind, cluster.Name, held)
	if held > 0 {
		message += fmt.Sprintf("; if the cluster does not exist any more, annotate this ManagedCluster with %s=true", ForceDeleteAnnotation)
	}
	return message, nil
}

// mayForce is true if somebody declared the cluster gone, and its agent had its time.
func (r *Reconciler) mayForce(cluster *clusterv1.ManagedCluster) bool {
	wait := r.ForceDeleteWait
	if wait == 0 {
		wait = forceDeleteWait
	}
	return cluster.Annotations[ForceDeleteAnnotation] == "true" && !r.Clock.Now().Before(cluster.DeletionTimestamp.Add(wait))
}

// list returns the objects of a kind in a namespace: none if the hub does not serve it.
func (r *Reconciler) list(ctx context.Context, kind schema.GroupVersionKind, namespace string) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := r.Live.List(ctx, list, client.InNamespace(namespace)); err != nil && !meta.IsNoMatchError(err) && client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("listing remaining objects of kind %s in namespace %q: %w", kind.Kind, namespace, err)
	}
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(kind)
	}
	return list.Items, nil
}

// firstToGo are the indexes of the objects with the smallest priority.
func firstToGo(objects []metav1.PartialObjectMetadata) map[int]bool {
	least := lastPriority + 1
	for i := range objects {
		least = min(least, priorityOf(&objects[i]))
	}
	first := map[int]bool{}
	for i := range objects {
		if priorityOf(&objects[i]) == least {
			first[i] = true
		}
	}
	return first
}

// priorityOf is 0 unless an annotation says otherwise, 0 to 100.
func priorityOf(object *metav1.PartialObjectMetadata) int {
	priority, err := strconv.Atoi(object.Annotations[clusterv1.CleanupPriorityAnnotation])
	if err != nil || priority < 0 || priority > lastPriority {
		return 0
	}
	return priority
}

// releaseWorkBinding deletes a cluster's permission to apply works, and removes its finalizer once
// there are none. It returns whether there are any.
func (r *Reconciler) releaseWorkBinding(ctx context.Context, cluster string) (bool, error) {
	if err := r.delete(ctx, workBinding(cluster, nil)); err != nil {
		return false, err
	}
	works, err := r.list(ctx, worksKind(), cluster)
	if err != nil || len(works) > 0 {
		return len(works) > 0, err
	}
	binding := &rbacv1.RoleBinding{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(workBinding(cluster, nil)), binding); err != nil || binding.DeletionTimestamp == nil {
		return false, client.IgnoreNotFound(err)
	}
	return false, r.removeBindingFinalizer(ctx, binding)
}
