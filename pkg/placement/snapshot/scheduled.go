// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// reportInvalid reports invalid selectors. The rest of the status stays, because it is still true for
// the last valid generation.
func (r *Reconciler) reportInvalid(ctx context.Context, placement placementv1beta1.PlacementObject, refused *refusal.Refusal) error {
	return r.setScheduled(ctx, placement, metav1.Condition{
		Status: metav1.ConditionFalse, Reason: refused.Reason, Message: refused.Message,
	})
}

// reportUnreadable reports why a placement is not scheduled yet. The condition of a scheduled placement
// stays.
func (r *Reconciler) reportUnreadable(ctx context.Context, placement placementv1beta1.PlacementObject, fault error) error {
	if meta.IsStatusConditionTrue(placement.GetStatus().Conditions, placement.ConditionType(placementv1beta1.ConditionScheduled)) {
		return nil
	}
	return r.setScheduled(ctx, placement, metav1.Condition{
		Status: metav1.ConditionUnknown, Reason: placementv1beta1.ReasonSchedulePending,
		Message: fmt.Sprintf("Retrying, because %v; check its APIService or CustomResourceDefinition", fault),
	})
}

// withdrawInvalid removes the report once the selectors are valid, so that the controller
// placement.status writes the condition again.
func (r *Reconciler) withdrawInvalid(ctx context.Context, placement placementv1beta1.PlacementObject) error {
	now := meta.FindStatusCondition(placement.GetStatus().Conditions, placement.ConditionType(placementv1beta1.ConditionScheduled))
	if now == nil || now.Reason != placementv1beta1.ReasonInvalidResourceSelectors {
		return nil
	}
	return r.setScheduled(ctx, placement, metav1.Condition{
		Status: metav1.ConditionUnknown, Reason: placementv1beta1.ReasonSchedulePending, Message: "The resource selectors are valid now, scheduling continues",
	})
}

func (r *Reconciler) setScheduled(ctx context.Context, placement placementv1beta1.PlacementObject, condition metav1.Condition) error {
	condition.Type = placement.ConditionType(placementv1beta1.ConditionScheduled)
	condition.ObservedGeneration = placement.GetGeneration()
	return reconcileutil.PatchStatus(ctx, r.Client, placement, func() {
		if status := placement.GetStatus(); meta.SetStatusCondition(&status.Conditions, condition) {
			status.Reason, status.Message = condition.Reason, condition.Message // It is never True here.
		}
	}, "writing the status of placement %q", placement.GetName())
}
