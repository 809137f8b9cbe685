// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// The reasons of events that clients know, beside those of the stages.
const (
	// scheduleSuccess is told when all members that are wanted were found.
	scheduleSuccess = "PlacementScheduleSuccess"
	// syncSuccess is an older name of the stage of Works.
	syncSuccess = "PlacementSyncSuccess"
	// rolloutCompleted is told when the last stage comes true.
	rolloutCompleted = "PlacementRolloutCompleted"
)

// happened is an event to tell.
type happened struct{ reason, message string }

// eventsOf are the stages that came true between two states of a placement.
func eventsOf(before, after placementv1beta1.PlacementObject) []happened {
	var all []happened
	stages := stagesOf(after.GetSpec())
	if c := meta.FindStatusCondition(after.GetStatus().Conditions, after.ConditionType(placementv1beta1.ConditionScheduled)); c != nil &&
		c.Status == metav1.ConditionTrue && !wasTrue(before, placementv1beta1.ConditionScheduled, c.ObservedGeneration) {
		all = append(all, happened{scheduleSuccess, "Successfully scheduled the placement"})
	}
	for i, s := range stages {
		c := meta.FindStatusCondition(after.GetStatus().Conditions, after.ConditionType(s.kind))
		if c == nil || c.Status != metav1.ConditionTrue || wasTrue(before, s.kind, c.ObservedGeneration) {
			continue
		}
		all = append(all, happened{s.event, c.Message})
		if s.kind == workSynchronized.kind {
			all = append(all, happened{syncSuccess, "Successfully synchronized the placement"})
		}
		if i == len(stages)-1 {
			all = append(all, happened{rolloutCompleted, "The resources have been placed on all selected clusters"})
		}
	}
	return all
}

// wasTrue reports whether the condition was True of the generation before.
func wasTrue(placement placementv1beta1.PlacementObject, kind string, generation int64) bool {
	c := meta.FindStatusCondition(placement.GetStatus().Conditions, placement.ConditionType(kind))
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == generation
}
