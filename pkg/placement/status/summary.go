// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/problems"
)

// summarize sets the summary fields of a status. They depend only on the rest of the status, so they
// alone are no reason to write it.
func (c *computation) summarize() {
	c.status.Available = c.available()
	c.status.Reason, c.status.Message = c.worst()
}

// available is the status of the condition that people wait for, or of an earlier condition that is not
// True, in which case the awaited one is missing.
func (c *computation) available() metav1.ConditionStatus {
	if c.stages[len(c.stages)-1].kind != available.kind {
		return ""
	}
	for _, s := range slices.Backward(c.stages) {
		if is := meta.FindStatusCondition(c.status.Conditions, c.Placement.ConditionType(s.kind)); is != nil {
			return is.Status
		}
	}
	return ""
}

// worst is the reason and message of a lasting problem, else of a waiting state.
func (c *computation) worst() (reason, message string) {
	for _, t := range problems.OfStatus(c.Placement, c.status) {
		if reason := c.reasonOf(t.Condition); reason != "" && !t.Waits {
			t.Others = 0 // With a number, the message would change with every member.
			return reason, t.String()
		}
	}
	if c.status.SelectsNothing() {
		return placementv1beta1.ReasonNothingSelected, problems.NothingSelected
	}
	kinds := []string{placementv1beta1.ConditionScheduled}
	for _, s := range c.stages {
		kinds = append(kinds, s.kind)
	}
	for _, kind := range kinds {
		if is := meta.FindStatusCondition(c.status.Conditions, c.Placement.ConditionType(kind)); is != nil && is.Status != metav1.ConditionTrue {
			return is.Reason, is.Message
		}
	}
	if unmatched := problems.UnmatchedNames(c.Placement, c.status); unmatched != "" {
		return placementv1beta1.ReasonSelectorUnmatched, unmatched
	}
	return "", ""
}

// reasonOf is the reason of the placement's condition while it is False; empty for a problem without a
// condition, such as drift.
func (c *computation) reasonOf(kind string) string {
	if kind == placementv1beta1.ConditionScheduled {
		return meta.FindStatusCondition(c.status.Conditions, c.Placement.ConditionType(kind)).Reason
	}
	for _, s := range allStages() {
		if s.kind == kind {
			return s.failed
		}
	}
	return ""
}
