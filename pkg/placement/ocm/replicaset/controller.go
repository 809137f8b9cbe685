// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/kube/crdwait"
	"fleetgate.io/fleetgate/pkg/kube/naming"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

// Name is the controller's name.
const Name = "manifestworkreplicaset.works"

// settle is how long clusters' status updates are gathered: a thousand concurrent ones cause only a
// few reconciliations.
const settle = 50 * time.Millisecond

// Reconciler creates ManifestWorks from ManifestWorkReplicaSets.
type Reconciler struct {
	// Client reads through the cache, and sees its own writes there.
	Client client.Client
	// Live reads without the cache, where nothing may be missed.
	Live  client.Reader
	Clock clock.PassiveClock
	// Workers is how many sets are reconciled at a time.
	Workers int
	// Tenancy limits the clusters that a set delivers to, on a hub that serves
	// ManagedClusterSetBindings. If unset, there is no limit.
	Tenancy Tenancy

	// limited is true if the hub serves the kinds that Tenancy reads.
	limited atomic.Bool

	baselines baselines
}

// SetupWithManager starts the controller once the hub serves Placements. It reconciles a set when
// its spec, labels or annotations change or it is being deleted, when one of its ManifestWorks changes, and
// when a Placement that it names, or a decision of it, changes.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	return mgr.Add(&crdwait.Kinds{
		Manager: mgr, Then: r.start,
		Names:   []string{"placements.cluster.open-cluster-management.io", "placementdecisions.cluster.open-cluster-management.io"},
		Missing: "ManifestWorkReplicaSets get no ManifestWorks until the hub serves Placements",
	})
}

func (r *Reconciler) start(mgr ctrl.Manager) error {
	changed := builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{}))
	c, err := ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&workv1alpha1.ManifestWorkReplicaSet{}, changed).
		Watches(&workv1.ManifestWork{}, enqueue.After(settle, func(work client.Object) []types.NamespacedName {
			if key, ok := setOf(work); ok {
				return []types.NamespacedName{key}
			}
			return nil
		})).
		Watches(&ocmclusterv1beta1.Placement{}, r.enqueueSets(func(placement client.Object) string { return placement.GetName() })).
		Watches(&ocmclusterv1beta1.PlacementDecision{}, r.enqueueSets(func(decision client.Object) string {
			return naming.Labelled(decision, ocmclusterv1beta1.PlacementLabel)
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers}).
		Build(r)
	if err != nil {
		return reconcileutil.SetupError(Name, err)
	}
	return reconcileutil.SetupError(Name, r.limit(mgr, c))
}

// enqueueSets queues the sets that name the Placement of an object.
func (r *Reconciler) enqueueSets(placement func(client.Object) string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		name := placement(object)
		if name == "" {
			return nil
		}
		return enqueue.All(ctx, r.Client, &workv1alpha1.ManifestWorkReplicaSetList{}, client.InNamespace(object.GetNamespace()), client.MatchingFields{setsByPlacement: name})
	})
}

// Reconcile brings the ManifestWorks of one set up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	set := &workv1alpha1.ManifestWorkReplicaSet{}
	if exists, err := reconcileutil.GetIfExists(ctx, r.Client, req.NamespacedName, set, "reading ManifestWorkReplicaSet %s", req.NamespacedName); !exists {
		if err == nil {
			r.baselines.forget(req.NamespacedName)
		}
		return ctrl.Result{}, err
	}
	var again time.Duration
	var err error
	if set.DeletionTimestamp != nil {
		err = r.finalize(ctx, set)
	} else if err = reconcileutil.AddFinalizer(ctx, r.Client, set, workv1alpha1.ManifestWorkReplicaSetFinalizer, "adding the finalizer to ManifestWorkReplicaSet %s/%s", set.Namespace, set.Name); err == nil {
		again, err = r.rollOut(ctx, set)
	}
	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: objects.RetryDelay}, nil
	case objects.RefusedAsGoing(err):
		return ctrl.Result{RequeueAfter: objects.GoingDelay}, nil
	}
	return ctrl.Result{RequeueAfter: again}, err
}

// finalize deletes the set's ManifestWorks and removes the finalizer: at once, or with policy
// Foreground when they are gone. The deletion of the last one triggers a reconciliation.
func (r *Reconciler) finalize(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet) error {
	if !controllerutil.ContainsFinalizer(set, workv1alpha1.ManifestWorkReplicaSetFinalizer) {
		return nil
	}
	works := &metav1.PartialObjectMetadataList{}
	works.SetGroupVersionKind(workv1.GroupVersion.WithKind("ManifestWorkList"))
	// Read from the API server itself, because none may be missed.
	if err := r.Live.List(ctx, works, client.MatchingLabels{workv1alpha1.ReplicaSetLabel: labelValue(set)}); err != nil {
		return fmt.Errorf("listing the ManifestWorks of ManifestWorkReplicaSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	var names []workName
	for i := range works.Items {
		if works.Items[i].DeletionTimestamp == nil {
			names = append(names, nameOf(&works.Items[i]))
		}
	}
	if err := inParallel(names, func(work workName) error { return r.remove(ctx, work) }).first(); err != nil {
		return err
	}
	if set.Spec.CascadeDeletionPolicy == workv1alpha1.CascadeForeground && len(works.Items) > 0 {
		return nil
	}
	return reconcileutil.RemoveFinalizer(ctx, r.Client, set, workv1alpha1.ManifestWorkReplicaSetFinalizer, "removing the finalizer of ManifestWorkReplicaSet %s/%s", set.Namespace, set.Name)
}

// workName identifies a ManifestWork, but not another one that replaces it.
type workName struct {
	types.NamespacedName
	uid types.UID
}

func nameOf(work client.Object) workName {
	return workName{NamespacedName: client.ObjectKeyFromObject(work), uid: work.GetUID()}
}

func (r *Reconciler) remove(ctx context.Context, name workName) error {
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	if err := r.Client.Delete(ctx, work, client.Preconditions{UID: &name.uid}); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting ManifestWork %s: %w", name, err)
	}
	return nil
}
