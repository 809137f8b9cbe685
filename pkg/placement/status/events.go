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

// The reasons of events that clients know, beside those of the stages.
const (
	// scheduleSuccess is told when all members that are wanted were found.
	scheduleSuccess = "PlacementScheduleSuccess"
	// syncSuccess is an older name of the stage of Works.
	syncSuccess = "PlacementSyncSuccess"
	// rolloutCompleted is told when the last stage comes true.
	rolloutCompleted = "PlacementRolloutCompleted"
)

// warnings are the reasons of events about what a person has to do something about, by the
// condition of the trouble.
var warnings = map[string]string{
	placementv1beta1.ConditionScheduled:        "PlacementNotScheduled",
	placementv1beta1.ConditionOverridden:       "PlacementOverriddenFailed",
	placementv1beta1.ConditionWorkSynchronized: "PlacementWorkNotSynchronized",
	placementv1beta1.ConditionApplied:          "PlacementApplyFailed",
	placementv1beta1.ConditionDiffReported:     "PlacementDiffReportFailed",
	problems.Drifted:                           "PlacementDrifted",
}

// happened is an event to tell, of type Warning or Normal.
type happened struct{ kind, reason, message string }

// eventsOf are what went wrong between two states of a placement, and what came true. The
// recorder counts what is told again.
func eventsOf(before, after placementv1beta1.PlacementObject) []happened {
	return append(wentWrong(before, after), cameTrue(before, after)...)
}

// wentWrong tells each trouble when it begins, and when it is another's: another member's,
// object's or sentence. How many more members have it does not matter.
func wentWrong(before, after placementv1beta1.PlacementObject) []happened {
	var all []happened
	known := problems.Of(before)
	for _, t := range problems.Of(after) {
		told := slices.ContainsFunc(known, func(old problems.Trouble) bool {
			old.Others = t.Others
			return old == t
		})
		if !told && !t.Waits {
			all = append(all, happened{corev1.EventTypeWarning, warnings[t.Condition], t.String()})
		}
	}
	return all
}

// cameTrue are the stages that came true between two states of a placement.
func cameTrue(before, after placementv1beta1.PlacementObject) []happened {
	var all []happened
	stages := stagesOf(after.GetSpec())
	if c := meta.FindStatusCondition(after.GetStatus().Conditions, after.ConditionType(placementv1beta1.ConditionScheduled)); c != nil &&
		c.Status == metav1.ConditionTrue && !wasTrue(before, placementv1beta1.ConditionScheduled, c.ObservedGeneration) {
		all = append(all, happened{corev1.EventTypeNormal, scheduleSuccess, "Successfully scheduled the placement"})
	}
	for i, s := range stages {
		c := meta.FindStatusCondition(after.GetStatus().Conditions, after.ConditionType(s.kind))
		if c == nil || c.Status != metav1.ConditionTrue || wasTrue(before, s.kind, c.ObservedGeneration) {
			continue
		}
		all = append(all, happened{corev1.EventTypeNormal, s.event, c.Message})
		if s.kind == workSynchronized.kind {
			all = append(all, happened{corev1.EventTypeNormal, syncSuccess, "Successfully synchronized the placement"})
		}
		if i == len(stages)-1 {
			all = append(all, happened{corev1.EventTypeNormal, rolloutCompleted, "The resources have been placed on all selected clusters"})
		}
	}
	return all
}

// wasTrue reports whether the condition was True of the generation before.
func wasTrue(placement placementv1beta1.PlacementObject, kind string, generation int64) bool {
	c := meta.FindStatusCondition(placement.GetStatus().Conditions, placement.ConditionType(kind))
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == generation
}
