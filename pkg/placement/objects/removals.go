// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// suspensions are the reasons of condition RemovalSuspended, in the order in which they are reported. A
// suspended selection comes first: until it is confirmed, members get no update at all.
var suspensions = []string{
	placementv1beta1.ReasonConfirmationRequired,
	placementv1beta1.ReasonPolicyConfirmationRequired,
	placementv1beta1.ReasonTenancyConfirmationRequired,
	placementv1beta1.ReasonOverrideConfirmationRequired,
	placementv1beta1.ReasonChartConfirmationRequired,
}

// Suspended reports whether the placement has a removal that is suspended for one of the reasons. Each package
// that suspends removals has a reason of its own in the same condition. A nil placement is deleted.
func Suspended(placement placementv1beta1.PlacementObject, reasons ...string) bool {
	if placement == nil {
		return false
	}
	c := meta.FindStatusCondition(placement.GetStatus().Conditions, placementv1beta1.ConditionRemovalSuspended)
	return c != nil && slices.Contains(reasons, c.Reason)
}

// SetSuspension sets the condition about a removal that is suspended for a reason, or removes it if it is
// nil. The condition needs a message. One that is reported first, or that is not about this reason, stays.
func SetSuspension(placement placementv1beta1.PlacementObject, reason string, condition *metav1.Condition) (changed bool) {
	conditions := &placement.GetStatus().Conditions
	reported := meta.FindStatusCondition(*conditions, placementv1beta1.ConditionRemovalSuspended)
	if condition == nil {
		return reported != nil && reported.Reason == reason && meta.RemoveStatusCondition(conditions, reported.Type)
	}
	if reported != nil && slices.Contains(suspensions[:slices.Index(suspensions, reason)], reported.Reason) {
		return false
	}
	condition.Type, condition.Status, condition.Reason = placementv1beta1.ConditionRemovalSuspended, metav1.ConditionTrue, reason
	condition.ObservedGeneration = placement.GetGeneration()
	return meta.SetStatusCondition(conditions, *condition)
}

// RecordTime returns the time at which a record of recent removals is read. While a removal is suspended,
// the record does not age: otherwise the removal would be carried out after a while. The reason does not
// matter, because another suspended removal can hide it.
func RecordTime(conditions []metav1.Condition, now time.Time) time.Time {
	if suspended := meta.FindStatusCondition(conditions, placementv1beta1.ConditionRemovalSuspended); suspended != nil {
		return suspended.LastTransitionTime.Time
	}
	return now
}

// AfterRecent is the part of a message about a suspended removal that counts recent ones; empty without any.
func AfterRecent(recent int) string {
	if recent == 0 {
		return ""
	}
	return fmt.Sprintf(" after %d others within %s", recent, duration.HumanDuration(placementv1beta1.RemovalWindow))
}

// NoteRemovals writes a record of removals into an object, before they are carried out, so that a restarted
// gateway counts them. It reads only the name and annotations of the object, and updates it.
func NoteRemovals(ctx context.Context, c client.Writer, object client.Object, recent placementv1beta1.RecentRemovals, what string) error {
	text := recent.String()
	if object.GetAnnotations()[placementv1beta1.RecentRemovalsAnnotation] == text {
		return nil
	}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, placementv1beta1.RecentRemovalsAnnotation, text))
	if err := c.Patch(ctx, object, patch); err != nil {
		return fmt.Errorf("recording removals on %s %s: %w", what, klog.KObj(object), err)
	}
	return nil
}

// ReportSuspension is SetSuspension with an event if a condition changed. The caller owns the placement.
func ReportSuspension(ctx context.Context, c client.StatusClient, recorder events.EventRecorder, placement placementv1beta1.PlacementObject, reason string, condition *metav1.Condition, action string) error {
	changed := false
	err := reconcileutil.PatchStatus(ctx, c, placement, func() { changed = SetSuspension(placement, reason, condition) },
		"writing the status of placement %q", klog.KObj(placement))
	if err == nil && changed && condition != nil {
		recorder.Eventf(placement, nil, corev1.EventTypeWarning, condition.Type, action, "%s", condition.Message)
	}
	return err
}
