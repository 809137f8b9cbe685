// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// Name is the controller's name.
const Name = "managedclusteraddon.health"

// DefaultInterval is the usual interval of checks of add-ons that are not available.
const DefaultInterval = 10 * time.Second

// Reconciler reports the health of add-ons.
type Reconciler struct {
	// Hub reads the ManagedClusterAddOns of the cluster from a cache, and writes their status.
	Hub client.Client
	// Member reads Leases from the member itself.
	Member client.Reader
	Clock  clock.PassiveClock
	// Interval is the interval of checks of add-ons that are not available. Zero is DefaultInterval.
	Interval time.Duration
}

var _ reconcile.Reconciler = (*Reconciler)(nil)

// SetupWithManager watches the ManagedClusterAddOns in the manager's cache: only the cluster's. What
// the hub writes about a cluster without a heartbeat is checked after a pause, because the hub
// repeats it until the heartbeat is back.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Interval == 0 {
		r.Interval = DefaultInterval
	}
	itself := func(object client.Object) []types.NamespacedName {
		return []types.NamespacedName{client.ObjectKeyFromObject(object)}
	}
	otherLease := enqueue.Updates(func(before, after *addonv1alpha1.ManagedClusterAddOn) bool {
		was, had := leaseOf(before)
		is, has := leaseOf(after)
		return was != is || had != has
	})
	overwritten := enqueue.OnUpdate(func(before, after *addonv1alpha1.ManagedClusterAddOn) bool {
		return isAvailable(before) && !isAvailable(after)
	})
	return reconcileutil.SetupError(Name, ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&addonv1alpha1.ManagedClusterAddOn{}, builder.WithPredicates(otherLease)).
		Watches(&addonv1alpha1.ManagedClusterAddOn{}, enqueue.After(r.Interval, itself), builder.WithPredicates(overwritten)).
		Complete(reconcileutil.RetryConflicts(r)))
}

func isAvailable(addOn *addonv1alpha1.ManagedClusterAddOn) bool {
	return meta.IsStatusConditionTrue(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable)
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	exists, err := reconcileutil.GetIfExists(ctx, r.Hub, req.NamespacedName, addOn, "reading ManagedClusterAddOn %s", req.NamespacedName)
	if !exists {
		return ctrl.Result{}, err
	}
	key, tells := leaseOf(addOn)
	if !tells {
		return ctrl.Result{}, nil
	}
	lease := &coordinationv1.Lease{}
	exists, err = reconcileutil.GetIfExists(ctx, r.Member, key, lease, "reading Lease %s of an add-on on the member", key)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !exists {
		lease = nil
	}
	now := r.Clock.Now()
	condition, expires := conditionOf(addOn.Name, lease, now)
	again := r.Interval
	if !expires.IsZero() {
		again = max(expires.Sub(now), time.Millisecond)
	}
	return reconcileutil.RequeueOnConflict(ctrl.Result{RequeueAfter: again}, client.IgnoreNotFound(reconcileutil.PatchStatus(ctx, r.Hub, addOn, func() {
		meta.SetStatusCondition(&addOn.Status.Conditions, condition)
	}, "writing the health of ManagedClusterAddOn %s", req.NamespacedName)))
}
