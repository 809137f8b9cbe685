// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"fleetgate.io/fleetgate/pkg/addon/hub/annotations"
	"fleetgate.io/fleetgate/pkg/addon/hub/objects"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// Name is the controller's name.
const Name = "managedclusteraddon.progress"

// Reconciler maintains ManagedClusterAddOns.
type Reconciler struct {
	// Client reads from a cache with the indexes of package objects.
	Client client.Client
	// Reported reports whether the manager of an add-on writes condition Progressing itself, with Report.
	Reported func(*addonv1alpha1.ClusterManagementAddOn) bool
	// Workers is how many add-ons are reconciled at a time.
	Workers int
}

var _ reconcile.Reconciler = (*Reconciler)(nil)

// SetupWithManager reconciles an add-on when it, its ClusterManagementAddOn, one of its
// ManifestWorks or the annotations of its cluster change.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	changed := predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	annotated := builder.WithPredicates(enqueue.OnUpdate(func(before, after *clusterv1.ManagedCluster) bool { return annotations.Differ(before, after) }))
	return reconcileutil.SetupError(Name, ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&addonv1alpha1.ManagedClusterAddOn{}).
		Watches(&addonv1alpha1.ClusterManagementAddOn{}, objects.OfClusterManagementAddOn(r.Client), builder.WithPredicates(changed)).
		Watches(&workv1.ManifestWork{}, enqueue.After(0, addOnOf)).
		Watches(&clusterv1.ManagedCluster{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, cluster client.Object) []reconcile.Request {
			return enqueue.All(ctx, r.Client, &addonv1alpha1.ManagedClusterAddOnList{}, client.InNamespace(cluster.GetName()))
		}), annotated).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers}).
		Complete(reconcileutil.RetryConflicts(r)))
}

// addOnOf is the add-on of a ManifestWork, if any.
func addOnOf(work client.Object) []types.NamespacedName {
	name := work.GetLabels()[addonv1alpha1.AddOnNameLabel]
	if name == "" {
		return nil
	}
	namespace := work.GetNamespace()
	if of := work.GetLabels()[addonv1alpha1.AddOnNamespaceLabel]; of != "" {
		namespace = of
	}
	return []types.NamespacedName{{Namespace: namespace, Name: name}}
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return reconcileutil.RequeueOnConflict(ctrl.Result{}, client.IgnoreNotFound(r.reconcile(ctx, req.NamespacedName)))
}

func (r *Reconciler) reconcile(ctx context.Context, key client.ObjectKey) error {
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	exists, err := reconcileutil.GetIfExists(ctx, r.Client, key, addOn, "reading ManagedClusterAddOn %s", key)
	if !exists || addOn.DeletionTimestamp != nil {
		return err
	}
	of := &addonv1alpha1.ClusterManagementAddOn{}
	exists, err = reconcileutil.GetIfExists(ctx, r.Client, client.ObjectKey{Name: key.Name}, of, "reading ClusterManagementAddOn %q", key.Name)
	if !exists || of.DeletionTimestamp != nil || !objects.ManagedByHub(of) {
		return err
	}
	if err := r.adopt(ctx, addOn, of); err != nil || r.Reported(of) {
		return err
	}
	works, err := r.worksOf(ctx, addOn)
	if err != nil {
		return err
	}
	return reconcileutil.PatchStatus(ctx, r.Client, addOn, func() {
		Report(addOn, works)
	}, "writing the progress of ManagedClusterAddOn %s", key)
}

// adopt adds the owner reference, which managers wait for, and with strategy Placements the
// annotations of the cluster.
func (r *Reconciler) adopt(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, of *addonv1alpha1.ClusterManagementAddOn) error {
	cluster := &clusterv1.ManagedCluster{}
	annotated := false
	if objects.FollowsPlacements(of) {
		var err error
		if annotated, err = reconcileutil.GetIfExists(ctx, r.Client, client.ObjectKey{Name: addOn.Namespace}, cluster, "reading ManagedCluster %q", addOn.Namespace); err != nil {
			return err
		}
	}
	return reconcileutil.Patch(ctx, r.Client, addOn, func() {
		setOwner(addOn, of)
		if annotated {
			annotations.Copy(addOn, cluster)
		}
	}, "adding the owner of ManagedClusterAddOn %s/%s", addOn.Namespace, addOn.Name)
}

// setOwner makes a ClusterManagementAddOn the owner. A reference to it in another version stays. One
// to a predecessor of the same name is replaced: the garbage collector would delete the add-on.
func setOwner(addOn *addonv1alpha1.ManagedClusterAddOn, of *addonv1alpha1.ClusterManagementAddOn) {
	const kind = "ClusterManagementAddOn"
	if slices.ContainsFunc(addOn.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.UID == of.UID }) {
		return
	}
	owners := slices.DeleteFunc(slices.Clone(addOn.OwnerReferences), func(owner metav1.OwnerReference) bool { return owner.Kind == kind && owner.Name == of.Name })
	owner := metav1.NewControllerRef(of, addonv1alpha1.GroupVersion.WithKind(kind))
	if metav1.GetControllerOf(&metav1.ObjectMeta{OwnerReferences: owners}) != nil {
		owner.Controller = nil // An object has one controller.
	}
	addOn.OwnerReferences = append(owners, *owner)
}

// worksOf are the ManifestWorks of an add-on, in its namespace and on its hosting cluster. They must
// not be changed.
func (r *Reconciler) worksOf(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) ([]*workv1.ManifestWork, error) {
	namespaces := []string{addOn.Namespace}
	if host := hostOf(addOn); host != "" && host != addOn.Namespace {
		namespaces = append(namespaces, host)
	}
	var works []*workv1.ManifestWork
	for _, namespace := range namespaces {
		list := &workv1.ManifestWorkList{}
		if err := r.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{addonv1alpha1.AddOnNameLabel: addOn.Name}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing the ManifestWorks of ManagedClusterAddOn %s/%s: %w", addOn.Namespace, addOn.Name, err)
		}
		for i := range list.Items {
			if of := addOnOf(&list.Items[i]); of[0].Namespace == addOn.Namespace {
				works = append(works, &list.Items[i])
			}
		}
	}
	return works, nil
}
