// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/managedcluster"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/kube/crdwait"
)

// AddOnsName is the name of the controller that AddOnReconciler is.
const AddOnsName = "managedcluster.addons"

// Values of the labels about the state of an add-on.
const (
	addOnAvailable   = "available"
	addOnUnhealthy   = "unhealthy"
	addOnUnreachable = "unreachable"
)

// AddOnReconciler labels ManagedClusters, for use in Placements, with their add-ons and the state
// of each. It also sets the add-ons of a cluster without heartbeats to Unknown, because that
// cluster's agent would report their state. The hub may lack the kind of add-ons. None is created,
// deleted or changed otherwise.
type AddOnReconciler struct {
	// Client writes; it reads ManagedClusters, from a cache if it has one.
	Client client.Client
	// AddOns reads ManagedClusterAddOns from a cache.
	AddOns client.Reader
	// Workers is how many clusters are reconciled at a time. Zero means one.
	Workers int
}

var _ reconcile.Reconciler = (*AddOnReconciler)(nil)

// SetupWithManager starts the controller once the hub serves add-ons.
func (r *AddOnReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return mgr.Add(&crdwait.Kinds{
		Manager: mgr, Then: r.start,
		Names:   []string{"managedclusteraddons." + managedcluster.AddOnKind().Group},
		Missing: "ManagedClusters get no labels for add-ons until the hub serves ManagedClusterAddOns",
	})
}

func (r *AddOnReconciler) start(mgr ctrl.Manager) error {
	return reconcileutil.SetupError(AddOnsName, ctrl.NewControllerManagedBy(mgr).
		Named(AddOnsName).
		For(&clusterv1.ManagedCluster{}).
		Watches(&addonv1alpha1.ManagedClusterAddOn{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: object.GetNamespace()}}}
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers}).
		Complete(reconcileutil.RetryConflicts(r)))
}

// Reconcile implements reconcile.Reconciler.
func (r *AddOnReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster := &clusterv1.ManagedCluster{}
	found, err := reconcileutil.GetIfExists(ctx, r.Client, req.NamespacedName, cluster, "reading ManagedCluster %q", req.Name)
	if !found || cluster.DeletionTimestamp != nil {
		return ctrl.Result{}, err
	}
	return reconcileutil.RequeueOnConflict(ctrl.Result{}, client.IgnoreNotFound(r.reconcile(ctx, cluster)))
}

func (r *AddOnReconciler) reconcile(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	available := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ConditionAvailable)
	if available == nil {
		// Its namespace may still belong to something else.
		return nil
	}
	addOns := &addonv1alpha1.ManagedClusterAddOnList{}
	if err := r.AddOns.List(ctx, addOns, client.InNamespace(cluster.Name)); err != nil {
		return fmt.Errorf("listing the add-ons of ManagedCluster %q: %w", cluster.Name, err)
	}
	var failed []error
	if available.Status == metav1.ConditionUnknown {
		for i := range addOns.Items {
			failed = append(failed, r.setUnknown(ctx, &addOns.Items[i], *available))
		}
	}
	failed = append(failed, reconcileutil.Patch(ctx, r.Client, cluster, func() {
		cluster.Labels = labelsWith(cluster.Labels, addOns.Items)
	}, "labelling ManagedCluster %q with its add-ons", cluster.Name))
	return errors.Join(failed...)
}

// setUnknown sets an add-on to Unknown for the same reason as its cluster.
func (r *AddOnReconciler) setUnknown(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, of metav1.Condition) error {
	return reconcileutil.PatchStatus(ctx, r.Client, addOn, func() {
		meta.SetStatusCondition(&addOn.Status.Conditions, metav1.Condition{Type: addonv1alpha1.ConditionAvailable, Status: of.Status, Reason: of.Reason, Message: of.Message})
	}, "setting condition Available of ManagedClusterAddOn %s/%s to Unknown", addOn.Namespace, addOn.Name)
}

// labelsWith returns a cluster's labels with current add-on labels, and without those of removed
// add-ons. An add-on that is being deleted counts as removed, and one whose name does not fit into
// a label is left out.
func labelsWith(labels map[string]string, addOns []addonv1alpha1.ManagedClusterAddOn) map[string]string {
	labels = maps.Clone(labels)
	maps.DeleteFunc(labels, func(key, _ string) bool { return strings.HasPrefix(key, clusterv1.AddOnLabelPrefix) })
	for i := range addOns {
		key := clusterv1.AddOnLabelPrefix + addOns[i].Name
		if addOns[i].DeletionTimestamp != nil || len(validation.IsQualifiedName(key)) > 0 {
			continue
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = howIs(&addOns[i])
	}
	return labels
}

func howIs(addOn *addonv1alpha1.ManagedClusterAddOn) string {
	available := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable)
	switch {
	case available == nil:
		return addOnUnreachable
	case available.Status == metav1.ConditionTrue:
		return addOnAvailable
	case available.Status == metav1.ConditionFalse:
		return addOnUnhealthy
	}
	return addOnUnreachable
}
