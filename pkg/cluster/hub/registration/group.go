// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// GroupControllerName is the name of GroupReconciler.
const GroupControllerName = "clustergroup.status"

// maxNonReadyClusters limits the names in a group's status.
const maxNonReadyClusters = 10

// Reasons of a ClusterGroup's condition Ready.
const (
	reasonAllReady        = "AllReady"
	reasonClustersUnready = "ClustersNotReady"
	reasonSelectorInvalid = "SelectorInvalid"
)

// GroupReconciler counts the Clusters of a ClusterGroup.
type GroupReconciler struct {
	// Client reads ClusterGroups and Clusters, from a cache if it has one, and writes the status of
	// ClusterGroups.
	Client client.Client
	Clock  clock.PassiveClock
}

var _ reconcile.Reconciler = (*GroupReconciler)(nil)

// SetupWithManager watches groups, and the fields of Clusters that decide whether and how a group
// counts them.
func (r *GroupReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(GroupControllerName).
		For(&registrationv1alpha1.ClusterGroup{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&registrationv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.groupsBeside),
			builder.WithPredicates(predicate.Or(predicate.LabelChangedPredicate{}, readinessChanged()))).
		Complete(reconcileutil.RetryConflicts(r))
}

func readinessChanged() predicate.Predicate {
	return enqueue.Updates(func(before, after *registrationv1alpha1.Cluster) bool { return isReady(before) != isReady(after) })
}

// groupsBeside are all groups in the Cluster's namespace, because the groups that selected its previous
// labels are unknown.
func (r *GroupReconciler) groupsBeside(ctx context.Context, cluster client.Object) []reconcile.Request {
	return enqueue.All(ctx, r.Client, &registrationv1alpha1.ClusterGroupList{}, client.InNamespace(cluster.GetNamespace()))
}

// Reconcile writes the status of one ClusterGroup.
func (r *GroupReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var group registrationv1alpha1.ClusterGroup
	if err := r.Client.Get(ctx, req.NamespacedName, &group); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var clusters registrationv1alpha1.ClusterList // Only counted, so not copied.
	if err := r.Client.List(ctx, &clusters, client.InNamespace(group.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing Clusters: %w", err)
	}
	err := reconcileutil.PatchStatus(ctx, r.Client, &group, func() {
		group.Status = desiredGroupStatus(&group, clusters.Items, r.Clock.Now())
	}, "writing the status of ClusterGroup %q", group.Name)
	return reconcileutil.RequeueOnConflict(ctrl.Result{}, client.IgnoreNotFound(err))
}

// desiredGroupStatus counts Clusters. A null selector selects none, an empty one all.
func desiredGroupStatus(group *registrationv1alpha1.ClusterGroup, clusters []registrationv1alpha1.Cluster, now time.Time) registrationv1alpha1.ClusterGroupStatus {
	status := *group.Status.DeepCopy()
	selector, err := metav1.LabelSelectorAsSelector(group.Spec.Selector)
	if err != nil {
		selector = labels.Nothing()
	}
	status.ClusterCount, status.NonReadyClusterCount, status.NonReadyClusters = 0, 0, nil
	for i := range clusters {
		if !selector.Matches(labels.Set(clusters[i].Labels)) {
			continue
		}
		status.ClusterCount++
		if !isReady(&clusters[i]) {
			status.NonReadyClusterCount++
			status.NonReadyClusters = append(status.NonReadyClusters, clusters[i].Name)
		}
	}
	slices.Sort(status.NonReadyClusters)
	status.NonReadyClusters = status.NonReadyClusters[:min(len(status.NonReadyClusters), maxNonReadyClusters)]
	status.Display.ReadyClusters = fmt.Sprintf("%d/%d", status.ClusterCount-status.NonReadyClusterCount, status.ClusterCount)
	status.Conditions = registrationv1alpha1.WithCondition(status.Conditions, groupReady(&status, err), now)
	return status
}

func groupReady(status *registrationv1alpha1.ClusterGroupStatus, invalid error) registrationv1alpha1.GenericCondition {
	ready := registrationv1alpha1.GenericCondition{
		Type: registrationv1alpha1.ClusterConditionReady, Status: corev1.ConditionTrue, Reason: reasonAllReady,
	}
	switch {
	case invalid != nil:
		ready.Status, ready.Reason = corev1.ConditionFalse, reasonSelectorInvalid
		ready.Message = fmt.Sprintf("spec.selector is invalid, correct it: %v", invalid)
	case status.NonReadyClusterCount > 0:
		ready.Status, ready.Reason = corev1.ConditionFalse, reasonClustersUnready
		ready.Message = fmt.Sprintf("%d of %d clusters are not ready: see status.nonReadyClusters", status.NonReadyClusterCount, status.ClusterCount)
	}
	return ready
}

func isReady(cluster *registrationv1alpha1.Cluster) bool {
	return slices.ContainsFunc(cluster.Status.Conditions, func(c registrationv1alpha1.GenericCondition) bool {
		return c.Type == registrationv1alpha1.ClusterConditionReady && c.Status == corev1.ConditionTrue
	})
}
