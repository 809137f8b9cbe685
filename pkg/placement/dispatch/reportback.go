// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

// reportBack is a placement's reportBackStrategy. It is not part of the binding, because it changes
// nothing on the member.
func reportBack(placement placementv1beta1.PlacementObject) *placementv1beta1.ReportBackStrategy {
	if placement == nil {
		return nil
	}
	return placement.GetSpec().Strategy.ReportBackStrategy
}

// rolledOutByRuns reports whether only update runs start the rollout of a placement. A nil placement is
// deleted.
func rolledOutByRuns(placement placementv1beta1.PlacementObject) bool {
	return placement != nil && placement.GetSpec().Strategy.Type == placementv1beta1.ExternalStrategy
}

// placement reads a binding's placement, which callers must not change; nil if it is deleted. It is not
// copied: its status grows with the members, and each binding reads it.
func (r *Reconciler) placement(ctx context.Context, b placementv1beta1.BindingObject) (placementv1beta1.PlacementObject, error) {
	key, ok := objects.KeyOf(b)
	if !ok {
		return nil, nil
	}
	placement, err := objects.Placement(ctx, r.Client, key, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil {
		//lint:ignore nilerr Its binding goes too.
		return nil, nil
	}
	return placement, nil
}

// reportBackChanges passes changes of a placement's reportBackStrategy.
func reportBackChanges() predicate.Predicate {
	return enqueue.OnUpdate(func(before, after placementv1beta1.PlacementObject) bool {
		return !equality.Semantic.DeepEqual(before.GetSpec().Strategy.ReportBackStrategy, after.GetSpec().Strategy.ReportBackStrategy)
	})
}

func (r *Reconciler) bindingsFor() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, placement client.Object) []reconcile.Request {
		bindings, err := objects.Bindings(ctx, r.Client, client.ObjectKeyFromObject(placement))
		if err != nil {
			// The list is from memory, so it fails only when the gateway stops.
			ctrl.LoggerFrom(ctx).Error(err, "Could not list the bindings of a placement", "placement", placement.GetName())
		}
		return enqueue.Each(bindings)
	})
}
