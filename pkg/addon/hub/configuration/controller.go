// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"fleetgate.io/fleetgate/pkg/addon/hub/objects"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// Name is the controller's name.
const Name = "clustermanagementaddon.configuration"

const (
	// settle is how long changes of ManagedClusterAddOns are gathered: a thousand concurrent ones
	// cause only a few reconciliations.
	settle = 50 * time.Millisecond
	// writers is how many ManagedClusterAddOns are written at a time.
	writers = 16
)

// Reconciler writes configurations into the statuses of add-ons.
type Reconciler struct {
	// Client reads from a cache with the indexes of package objects.
	Client client.Client
	Clock  clock.PassiveClock
	// Workers is how many add-ons are reconciled at a time.
	Workers int
}

var _ reconcile.Reconciler = (*Reconciler)(nil)

// SetupWithManager reconciles an add-on when it or one of its ManagedClusterAddOns changes, and when
// the decisions of a Placement change.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return reconcileutil.SetupError(Name, ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&addonv1alpha1.ClusterManagementAddOn{}).
		Watches(&addonv1alpha1.ManagedClusterAddOn{}, enqueue.After(settle, objects.NamedLike)).
		Watches(&ocmclusterv1beta1.Placement{}, objects.OfPlacement(r.Client)).
		Watches(&ocmclusterv1beta1.PlacementDecision{}, objects.OfDecision(r.Client)).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers}).
		Complete(reconcileutil.RetryConflicts(r)))
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	addOn := &addonv1alpha1.ClusterManagementAddOn{}
	exists, err := reconcileutil.GetIfExists(ctx, r.Client, req.NamespacedName, addOn, "reading ClusterManagementAddOn %q", req.Name)
	if !exists || addOn.DeletionTimestamp != nil {
		return ctrl.Result{}, err
	}
	again, err := r.reconcile(ctx, addOn)
	return reconcileutil.RequeueOnConflict(ctrl.Result{RequeueAfter: again}, client.IgnoreNotFound(err))
}

// reconcile returns when to reconcile again.
func (r *Reconciler) reconcile(ctx context.Context, addOn *addonv1alpha1.ClusterManagementAddOn) (time.Duration, error) {
	status, now := addOn.Status.DeepCopy(), r.Clock.Now()
	desiredReferences(status, addOn)
	var failed []error
	var again time.Duration
	if objects.ManagedByHub(addOn) {
		g, err := r.graph(ctx, addOn, status, now)
		if err != nil {
			return 0, err
		}
		for i, n := range g.nodes {
			report(&status.InstallProgressions[i], n.refused, n.count(now))
		}
		failed = append(failed, r.write(ctx, g))
		if at := g.next(); !at.IsZero() {
			again = max(at.Sub(now), time.Millisecond)
		}
	}
	failed = append(failed, reconcileutil.PatchStatus(ctx, r.Client, addOn, func() {
		addOn.Status = *status
	}, "writing the status of ClusterManagementAddOn %q", addOn.Name))
	return again, errors.Join(failed...)
}

func (r *Reconciler) graph(ctx context.Context, addOn *addonv1alpha1.ClusterManagementAddOn, status *addonv1alpha1.ClusterManagementAddOnStatus, now time.Time) (*graph, error) {
	addOns, err := objects.AddOnsOf(ctx, r.Client, addOn.Name)
	if err != nil {
		return nil, err
	}
	in := inputs{status: status, addOns: addOns, now: now, exists: func(cluster string) bool {
		// A cache fails only when the program stops.
		return r.Client.Get(ctx, client.ObjectKey{Name: cluster}, &clusterv1.ManagedCluster{}) == nil
	}}
	if objects.FollowsPlacements(addOn) {
		for _, strategy := range addOn.Spec.InstallStrategy.Placements {
			decided, err := objects.DecidedBy(ctx, r.Client, strategy.PlacementRef)
			if err != nil {
				return nil, err
			}
			in.placements = append(in.placements, placed{strategy: strategy, decided: decided})
		}
	}
	return graphOf(in), nil
}

// write brings the statuses of the ManagedClusterAddOns up to date, some at a time.
func (r *Reconciler) write(ctx context.Context, g *graph) error {
	changes := g.changes()
	failed := make(chan error, len(changes))
	var group errgroup.Group
	group.SetLimit(writers)
	for addOn, change := range changes {
		group.Go(func() error {
			written := addOn.DeepCopy() // The cache shares the original.
			failed <- client.IgnoreNotFound(reconcileutil.PatchStatus(ctx, r.Client, written, func() {
				change(&written.Status)
			}, "writing the configurations of ManagedClusterAddOn %s/%s", addOn.Namespace, addOn.Name))
			return nil
		})
	}
	_ = group.Wait() // Each has its own error.
	close(failed)
	var all []error
	for err := range failed {
		all = append(all, err)
	}
	return errors.Join(all...)
}
