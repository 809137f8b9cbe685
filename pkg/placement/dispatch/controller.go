// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/placement/helmchart"
	"fleetgate.io/fleetgate/pkg/placement/objects"
	"fleetgate.io/fleetgate/pkg/placement/override"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
)

// Name is the controller's name.
const Name = "binding.works"

// Reconciler writes the Works of bindings and reports their status.
type Reconciler struct {
	Client client.Client
	// Live reads without the cache, where nothing may be missed.
	Live      client.Reader
	Snapshots snapshot.Reader
	// Charts renders charts; nil if snapshots contain none.
	Charts Charts
	// Scopes reports whether a kind of the hub is namespaced.
	Scopes helmchart.Scopes
	// Authors limits what is sent; nil means no limit.
	Authors *Authors
	Clock   clock.PassiveClock
	// Workers is the number of bindings that are reconciled at a time.
	Workers int

	// Recorder is for events of placements.
	Recorder events.EventRecorder

	inFlight  inFlight
	deletions deletions
	rendered  rendered
}

// SetupWithManager registers the controller. It reconciles a binding when
//   - its spec changes, an update run starts its rollout, or it is being deleted;
//   - one of its Works changes, or a Work that blocks one of its names;
//   - its placement changes reportBackStrategy, requests another author check, is paused or resumed, or a
//     removal of its objects is confirmed;
//   - its member joins, leaves, is paused or resumed, or stops or resumes its heartbeat;
//   - its member changes in a property that overrides or charts use;
//   - a chart has been rendered.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	respecified := builder.WithPredicates(predicate.Or(reportBackChanges(), objects.AuthorCheckChanged(), objects.PauseChanged(), objects.Confirmed()))
	b := ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&placementv1beta1.ClusterResourceBinding{}, builder.WithPredicates(bindingChanges())).
		Watches(&placementv1beta1.ResourceBinding{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(bindingChanges())).
		Watches(&placementv1beta1.Work{}, r.bindingsOf(), builder.WithPredicates(workChanges())).
		Watches(&clusterv1beta1.MemberCluster{}, r.bindingsTo(hasOverrides), builder.WithPredicates(override.MemberChanges())).
		Watches(&clusterv1beta1.MemberCluster{}, r.bindingsTo(all), builder.WithPredicates(predicate.Or(objects.PauseChanged(), memberReplaced(), objects.HeartbeatChanged()))).
		Watches(&placementv1beta1.ClusterResourcePlacement{}, r.bindingsFor(), respecified).
		Watches(&placementv1beta1.ResourcePlacement{}, r.bindingsFor(), respecified).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers})
	if r.Charts != nil {
		// Only snapshots know which bindings have a chart.
		b = b.WatchesRawSource(r.Charts.Source()).
			Watches(&clusterv1beta1.MemberCluster{}, r.bindingsTo(all), builder.WithPredicates(helmchart.MemberChanges()))
	}
	return reconcileutil.SetupError(Name, b.Complete(r))
}

// Reconcile dispatches one binding.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	b := objects.NewBinding(req.Namespace)
	err := r.Client.Get(ctx, req.NamespacedName, b)
	var again time.Duration
	switch {
	case apierrors.IsNotFound(err):
		r.inFlight.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("reading binding %q: %w", req.Name, err)
	case b.GetDeletionTimestamp() != nil:
		err = r.finalize(ctx, b)
	case b.GetSpec().ResourceSnapshotName == "":
		return ctrl.Result{}, nil // The rollout has not reached it yet.
	default:
		again, err = r.dispatch(ctx, b)
	}
	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: objects.RetryDelay}, nil
	case objects.RefusedAsGoing(err):
		return ctrl.Result{RequeueAfter: objects.GoingDelay}, nil
	case errors.Is(err, helmchart.ErrExhausted), errors.Is(err, helmchart.ErrUnreachable):
		return ctrl.Result{RequeueAfter: helmchart.Pause}, nil
	}
	return ctrl.Result{RequeueAfter: again}, err
}

// dispatch computes the Works of a binding, writes them, and reports the result.
func (r *Reconciler) dispatch(ctx context.Context, b placementv1beta1.BindingObject) (again time.Duration, err error) {
	in, err := r.read(ctx, b)
	switch {
	case err != nil:
		return 0, err
	case b.GetSpec().State != placementv1beta1.BindingBound:
		return r.writeStatus(ctx, b, dropped(in))
	case in.member == nil:
		return 0, nil // The scheduler deletes the binding of a leaving member.
	}
	if err := reconcileutil.AddFinalizer(ctx, r.Client, b, placementv1beta1.WorkCleanupFinalizer, "adding the finalizer to binding %q", b.GetName()); err != nil {
		return 0, err
	}
	works, err := r.sync(ctx, in)
	return r.report(ctx, in, works, err)
}
