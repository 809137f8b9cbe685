// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"fleetgate.io/fleetgate/pkg/addon/hub/objects"
	"fleetgate.io/fleetgate/pkg/addon/hub/template"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// Name is the controller's name.
const Name = "clustermanagementaddon.install"

const (
	// settle is how long changes of ManagedClusterAddOns are gathered.
	settle = 50 * time.Millisecond
	// writers is how many ManagedClusterAddOns are written at a time.
	writers = 16
	// missingDelay is the delay before a retry for clusters that have no ManagedCluster or no
	// namespace yet.
	missingDelay = 10 * time.Second
)

// Reconciler creates and deletes ManagedClusterAddOns.
type Reconciler struct {
	// Client reads from a cache with the indexes of package objects.
	Client client.Client
	// Live reads without the cache, where nothing may be missed.
	Live  client.Reader
	Clock clock.PassiveClock
	// Workers is how many add-ons are reconciled at a time.
	Workers int
}

var _ reconcile.Reconciler = (*Reconciler)(nil)

// SetupWithManager reconciles an add-on when its spec or annotations change or it is being deleted,
// when one of its ManagedClusterAddOns comes or goes, and when the decisions of a Placement change.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	changed := builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))
	return reconcileutil.SetupError(Name, ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&addonv1alpha1.ClusterManagementAddOn{}, changed).
		Watches(&addonv1alpha1.ManagedClusterAddOn{}, enqueue.After(settle, objects.NamedLike), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&ocmclusterv1beta1.Placement{}, objects.OfPlacement(r.Client)).
		Watches(&ocmclusterv1beta1.PlacementDecision{}, objects.OfDecision(r.Client)).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers}).
		Complete(reconcileutil.RetryConflicts(r)))
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	addOn := &addonv1alpha1.ClusterManagementAddOn{}
	if exists, err := reconcileutil.GetIfExists(ctx, r.Client, req.NamespacedName, addOn, "reading ClusterManagementAddOn %q", req.Name); !exists {
		return ctrl.Result{}, err
	}
	again, err := r.reconcile(ctx, addOn)
	return reconcileutil.RequeueOnConflict(ctrl.Result{RequeueAfter: again}, err)
}

// reconcile returns when to try again.
func (r *Reconciler) reconcile(ctx context.Context, addOn *addonv1alpha1.ClusterManagementAddOn) (time.Duration, error) {
	if addOn.DeletionTimestamp != nil {
		return 0, r.finalize(ctx, addOn)
	}
	if !template.UsesTemplates(addOn) {
		// The previous version added the finalizer to all.
		if err := r.release(ctx, addOn); err != nil {
			return 0, err
		}
	}
	if !objects.ManagedByHub(addOn) || !objects.FollowsPlacements(addOn) {
		return 0, nil
	}
	return r.install(ctx, addOn)
}

func (r *Reconciler) release(ctx context.Context, addOn *addonv1alpha1.ClusterManagementAddOn) error {
	return reconcileutil.RemoveFinalizer(ctx, r.Client, addOn, addonv1alpha1.CleanupFinalizer, "removing the finalizer of ClusterManagementAddOn %q", addOn.Name)
}

// finalize deletes the ManagedClusterAddOns, and removes the finalizer when they are gone. Without the
// finalizer, the garbage collector deletes them.
func (r *Reconciler) finalize(ctx context.Context, addOn *addonv1alpha1.ClusterManagementAddOn) error {
	if !controllerutil.ContainsFinalizer(addOn, addonv1alpha1.CleanupFinalizer) {
		return nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOnList"))
	// Read from the API server itself, because none may be missed.
	if err := r.Live.List(ctx, list, client.MatchingFields{metav1.ObjectNameField: addOn.Name}); err != nil {
		return fmt.Errorf("listing the ManagedClusterAddOns of ClusterManagementAddOn %q: %w", addOn.Name, err)
	}
	var leaving []client.Object
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			leaving = append(leaving, &list.Items[i])
		}
	}
	if err := inParallel(leaving, func(one client.Object) error { return r.remove(ctx, one) }); err != nil || len(list.Items) > 0 {
		return err // The deletion of the last one triggers a reconciliation.
	}
	return r.release(ctx, addOn)
}

// install follows the decisions of the Placements, and returns when to try again.
func (r *Reconciler) install(ctx context.Context, addOn *addonv1alpha1.ClusterManagementAddOn) (time.Duration, error) {
	var decided []*objects.Decided
	for _, placement := range addOn.Spec.InstallStrategy.Placements {
		d, err := objects.DecidedBy(ctx, r.Client, placement.PlacementRef)
		if err != nil {
			return 0, err
		}
		decided = append(decided, d)
	}
	existing, err := objects.AddOnsOf(ctx, r.Client, addOn.Name)
	if err != nil {
		return 0, err
	}
	p := planOf(decided, existing)
	if len(p.retained) > 0 {
		ctrl.LoggerFrom(ctx).V(1).Info("Retained add-ons of clusters without a decision", "clusters", p.retained, "incomplete", p.incomplete)
	}
	var missing atomic.Bool
	created := inParallel(p.create, func(cluster string) error {
		exists, err := r.create(ctx, addOn, cluster)
		if err == nil && !exists {
			missing.Store(true)
		}
		return err
	})
	var unavailable atomic.Bool
	removed := inParallel(p.remove, func(one *addonv1alpha1.ManagedClusterAddOn) error {
		loses, err := r.loses(ctx, one)
		switch {
		case err != nil:
			return err
		case !loses:
			unavailable.Store(true)
			return nil
		}
		return r.remove(ctx, one)
	})
	var again time.Duration
	switch {
	case missing.Load():
		again = missingDelay
	case unavailable.Load():
		again = returnDelay
	}
	return again, errors.Join(created, removed)
}

// loses reports whether the cluster of an add-on can lose it. The cache may have the decision already,
// and not yet the state of the cluster that caused it.
func (r *Reconciler) loses(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) (bool, error) {
	cluster := &clusterv1.ManagedCluster{}
	exists, err := reconcileutil.GetIfExists(ctx, r.Live, client.ObjectKey{Name: addOn.Namespace}, cluster, "reading ManagedCluster %q", addOn.Namespace)
	return err == nil && (!exists || mayLose(cluster, r.Clock.Now())), err
}

// create creates the ManagedClusterAddOn of a cluster, and reports whether the cluster exists. A
// decision can name anything, but only a ManagedCluster has a namespace for add-ons.
func (r *Reconciler) create(ctx context.Context, of *addonv1alpha1.ClusterManagementAddOn, name string) (exists bool, err error) {
	cluster := &clusterv1.ManagedCluster{}
	exists, err = reconcileutil.GetIfExists(ctx, r.Client, client.ObjectKey{Name: name}, cluster, "reading ManagedCluster %q", name)
	if !exists || cluster.DeletionTimestamp != nil {
		return false, err
	}
	err = r.Client.Create(ctx, desiredAddOn(of, cluster))
	switch {
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return false, nil
	case err != nil && !apierrors.IsAlreadyExists(err):
		return false, fmt.Errorf("creating ManagedClusterAddOn %s/%s: %w", name, of.Name, err)
	}
	return true, nil
}

func (r *Reconciler) remove(ctx context.Context, addOn client.Object) error {
	uid := addOn.GetUID()
	gone := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: addOn.GetNamespace(), Name: addOn.GetName()}}
	if err := r.Client.Delete(ctx, gone, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting ManagedClusterAddOn %s/%s: %w", addOn.GetNamespace(), addOn.GetName(), err)
	}
	return nil
}

// inParallel calls do for each of many, some at a time, and returns all errors.
func inParallel[T any](all []T, do func(T) error) error {
	failed := make([]error, len(all))
	var group errgroup.Group
	group.SetLimit(writers)
	for i, one := range all {
		group.Go(func() error {
			failed[i] = do(one)
			return nil
		})
	}
	_ = group.Wait() // Each has its own error.
	return errors.Join(failed...)
}
