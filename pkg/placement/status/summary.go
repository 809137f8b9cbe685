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

// summarize sets what a status says for itself, beside conditions that clients compare. It
// comes from nothing but the rest of the status, so it is no reason to write one.
func (c *computation) summarize() {
	c.status.Available = c.available()
	c.status.Reason, c.status.Message = c.worst()
}

// available is the status of the condition that people wait for, or of the one before it
// that is not True: without that one, the other is not there.
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

// worst is the reason and the sentence of what will not pass by itself, else of what is
// waited for.
func (c *computation) worst() (reason, message string) {
	for _, t := range problems.OfStatus(c.Placement, c.status) {
		if reason := c.reasonOf(t.Condition); reason != "" && !t.Waits {
			t.Others = 0 // With a number it would be another sentence with every member.
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
	return "", ""
}

// reasonOf is the reason that a condition of the placement has while it is False; empty for
// a trouble that is no condition, such as drift of what is applied.
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
