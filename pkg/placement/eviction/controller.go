// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

// Name is the controller's name.
const Name = "placement.evictions"

// Reconciler executes or blocks evictions.
type Reconciler struct {
	Client client.Client
	// Live reads without the cache, where nothing may be missed.
	Live client.Reader
}

// SetupWithManager registers the controller. It handles an eviction once. There is one worker, so that
// concurrent evictions cannot spend the same budget.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return reconcileutil.SetupError(Name, ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&placementv1beta1.ClusterResourcePlacementEviction{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}).
		Complete(reconcileutil.RetryConflictsAfter(objects.RetryDelay, r)))
}

// Reconcile executes or blocks one eviction, and writes the result into its status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	eviction := &placementv1beta1.ClusterResourcePlacementEviction{}
	if found, err := reconcileutil.GetIfExists(ctx, r.Client, req.NamespacedName, eviction, "reading eviction %q", req.Name); !found {
		return ctrl.Result{}, err
	}
	if eviction.DeletionTimestamp != nil || isDecided(eviction) {
		return ctrl.Result{}, nil
	}
	// If the binding changes meanwhile, the eviction is judged again.
	return objects.Again(ctrl.Result{}, r.execute(ctx, eviction))
}

func (r *Reconciler) execute(ctx context.Context, eviction *placementv1beta1.ClusterResourcePlacementEviction) error {
	c, err := r.gather(ctx, &eviction.Spec)
	if err != nil {
		return err
	}
	verdict := Decide(c)
	if b := verdict.Delete; b != nil {
		if err := r.remove(ctx, b); err != nil {
			return err
		}
	}
	before := eviction.DeepCopy()
	for _, condition := range verdict.conditions(eviction.Generation) {
		meta.SetStatusCondition(&eviction.Status.Conditions, condition)
	}
	if err := r.Client.Status().Patch(ctx, eviction, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of eviction %q: %w", eviction.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("Decided on an eviction", "placement", eviction.Spec.PlacementName, "member", eviction.Spec.ClusterName,
		"executed", verdict.Executed, "reason", verdict.Message)
	return nil
}

// remove deletes a binding. Without a cause, its deletion would remove nothing from the member. If the binding
// changed since the decision, the cause is not written.
func (r *Reconciler) remove(ctx context.Context, b placementv1beta1.BindingObject) error {
	err := reconcileutil.Patch(ctx, r.Client, b, func() {
		reconcileutil.SetAnnotation(b, placementv1beta1.DeletionCauseAnnotation, placementv1beta1.DeletionPlacementChanged)
	}, "writing the cause of the deletion of binding %q", b.GetName())
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := r.Client.Delete(ctx, b, client.Preconditions{UID: new(b.GetUID())}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting binding %q: %w", b.GetName(), err)
	}
	return nil
}

func (r *Reconciler) gather(ctx context.Context, spec *placementv1beta1.PlacementEvictionSpec) (*Case, error) {
	c := &Case{Member: spec.ClusterName}
	key := types.NamespacedName{Name: spec.PlacementName}
	placement, err := found(ctx, r.Live, key, &placementv1beta1.ClusterResourcePlacement{})
	if placement == nil || err != nil {
		return c, err
	}
	c.Placement = placement
	if c.Budget, err = found(ctx, r.Live, key, &placementv1beta1.ClusterResourcePlacementDisruptionBudget{}); err != nil {
		return nil, err
	}
	if c.Bindings, err = objects.LiveBindings(ctx, r.Live, key); err != nil {
		return nil, err
	}
	unreachable, err := objects.Unreachable(ctx, r.Client)
	c.Unreachable = sets.KeySet(unreachable)
	return c, err
}

// found reads an object; nil if it does not exist.
func found[O client.Object](ctx context.Context, reader client.Reader, key client.ObjectKey, object O) (O, error) {
	var none O
	if found, err := reconcileutil.GetIfExists(ctx, reader, key, object, "reading %T %q", object, key.Name); !found {
		return none, err
	}
	return object, nil
}
