// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/problems"
)

// These reasons of events are known to clients, in addition to those of the stages.
const (
	// scheduleSuccess is the event when all wanted members were found.
	scheduleSuccess = "PlacementScheduleSuccess"
	// syncSuccess is an older name for the stage of Works.
	syncSuccess = "PlacementSyncSuccess"
	// rolloutCompleted is the event when the last stage becomes True.
	rolloutCompleted = "PlacementRolloutCompleted"
)

// warnings are the reasons of events about problems that need a person, by the condition of the
// problem.
var warnings = map[string]string{
	placementv1beta1.ConditionScheduled:        "PlacementNotScheduled",
	placementv1beta1.ConditionOverridden:       "PlacementOverriddenFailed",
	placementv1beta1.ConditionWorkSynchronized: "PlacementWorkNotSynchronized",
	placementv1beta1.ConditionApplied:          "PlacementApplyFailed",
	placementv1beta1.ConditionDiffReported:     "PlacementDiffReportFailed",
	problems.Drifted:                           "PlacementDrifted",
}

// statusEvent is an event of type Warning or Normal.
type statusEvent struct{ kind, reason, message string }

// eventsOf are the new problems between two states of a placement, and the stages that became True. The
// recorder counts repeated events.
func eventsOf(before, after placementv1beta1.PlacementObject) []statusEvent {
	return append(newProblems(before, after), cameTrue(before, after)...)
}

// newProblems returns a problem when it begins, and when it names another member, object or sentence. The
// number of further members with it does not matter.
func newProblems(before, after placementv1beta1.PlacementObject) []statusEvent {
	var all []statusEvent
	known := problems.Of(before)
	for _, t := range problems.Of(after) {
		reported := slices.ContainsFunc(known, func(old problems.Trouble) bool {
			old.Others = t.Others
			return old == t
		})
		if !reported && !t.Waits {
			all = append(all, statusEvent{corev1.EventTypeWarning, warnings[t.Condition], t.String()})
		}
	}
	return all
}

// cameTrue are the stages that became True between two states of a placement.
func cameTrue(before, after placementv1beta1.PlacementObject) []statusEvent {
	var all []statusEvent
	stages := stagesOf(after.GetSpec())
	if c := meta.FindStatusCondition(after.GetStatus().Conditions, after.ConditionType(placementv1beta1.ConditionScheduled)); c != nil &&
		c.Status == metav1.ConditionTrue && !wasTrue(before, placementv1beta1.ConditionScheduled, c.ObservedGeneration) {
		all = append(all, statusEvent{corev1.EventTypeNormal, scheduleSuccess, "Successfully scheduled the placement"})
	}
	for i, s := range stages {
		c := meta.FindStatusCondition(after.GetStatus().Conditions, after.ConditionType(s.kind))
		if c == nil || c.Status != metav1.ConditionTrue || wasTrue(before, s.kind, c.ObservedGeneration) {
			continue
		}
		all = append(all, statusEvent{corev1.EventTypeNormal, s.event, c.Message})
		if s.kind == workSynchronized.kind {
			all = append(all, statusEvent{corev1.EventTypeNormal, syncSuccess, "Successfully synchronized the placement"})
		}
		if i == len(stages)-1 {
			all = append(all, statusEvent{corev1.EventTypeNormal, rolloutCompleted, "The resources have been placed on all selected clusters"})
		}
	}
	return all
}

// wasTrue reports whether the condition was True for that generation.
func wasTrue(placement placementv1beta1.PlacementObject, kind string, generation int64) bool {
	c := meta.FindStatusCondition(placement.GetStatus().Conditions, placement.ConditionType(kind))
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == generation
}
