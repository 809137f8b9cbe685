// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// member is a placement's status on one member, in construction.
type member struct {
	*computation
	status placementv1beta1.PerClusterPlacementStatus
	// old are the previous conditions.
	old    []metav1.Condition
	counts statusCounts
}

func (m *member) set(kind string, condition metav1.Condition) {
	condition.Type, condition.ObservedGeneration = kind, m.Placement.GetGeneration()
	meta.SetStatusCondition(&m.status.Conditions, condition)
	if m.counts != nil && kind != placementv1beta1.ConditionScheduled {
		m.counts.count(kind, condition.Status)
	}
}

// observe fills the status of a selected member. b is nil while there is no binding.
func (m *member) observe(d placementv1beta1.ClusterDecision, b placementv1beta1.BindingObject) {
	m.set(placementv1beta1.ConditionScheduled, metav1.Condition{
		Status: metav1.ConditionTrue, Reason: placementv1beta1.ReasonScheduled, Message: d.Reason,
	})
	switch {
	case b == nil:
		m.set(rolloutStarted.kind, rolloutStarted.unknown())
	case m.external():
		m.status.ObservedResourceIndex = m.IndexOf(b.GetSpec().ResourceSnapshotName)
		m.follow(b)
	case b.GetSpec().ResourceSnapshotName != m.Snapshot:
		m.status.ObservedResourceIndex = m.Index
		m.outdated(b)
	default:
		m.status.ObservedResourceIndex = m.Index
		m.follow(b)
	}
	keepTimes(m.status.Conditions, m.old)
}

// outdated handles a member that is not on the latest snapshot: it waits for its turn, or the rollout
// has not reached it.
func (m *member) outdated(b placementv1beta1.BindingObject) {
	if c := known(b, rolloutStarted.kind); c != nil && c.Status == metav1.ConditionFalse {
		m.set(rolloutStarted.kind, metav1.Condition{Status: c.Status, Reason: c.Reason, Message: c.Message})
		return
	}
	m.set(rolloutStarted.kind, rolloutStarted.unknown())
}

// follow copies the binding's conditions, up to the first that is not True.
func (m *member) follow(b placementv1beta1.BindingObject) {
	for _, s := range m.stages {
		c := known(b, s.kind)
		if c == nil {
			m.set(s.kind, s.unknown())
			return
		}
		m.details(s, c.Status, b)
		message := c.Message
		if silent := m.Unreachable[m.status.ClusterName]; silent != "" && s.kind == available.kind && c.Status == metav1.ConditionTrue {
			message += ", as last reported: " + silent
			m.lastReported++
		}
		m.set(s.kind, metav1.Condition{Status: c.Status, Reason: c.Reason, Message: message})
		if c.Status != metav1.ConditionTrue {
			return
		}
	}
}

// details copies the binding's entries for single objects that belong to the stage.
func (m *member) details(s stage, condition metav1.ConditionStatus, b placementv1beta1.BindingObject) {
	spec, status := b.GetSpec(), b.GetStatus()
	failed := condition == metav1.ConditionFalse
	switch s.kind {
	case rolloutStarted.kind:
		if !failed {
			m.status.ApplicableResourceOverrides = spec.ResourceOverrideSnapshots
			m.status.ApplicableClusterResourceOverrides = spec.ClusterResourceOverrideSnapshots
		}
	case applied.kind, available.kind:
		if failed {
			m.status.FailedPlacements, m.status.DiffedPlacements = status.FailedPlacements, visibleDiffs(status.DiffedPlacements)
		}
		m.status.DriftedPlacements = visibleDrifts(status.DriftedPlacements)
	case diffReported.kind:
		// KubeFleet's clients read differences only of a member that reported them all.
		if failed {
			m.status.FailedPlacements = status.FailedPlacements
		} else {
			m.status.DiffedPlacements = visibleDiffs(status.DiffedPlacements)
		}
	}
}

// known returns a condition about the binding's current spec that is True or False, else nil.
func known(b placementv1beta1.BindingObject, kind string) *metav1.Condition {
	c := meta.FindStatusCondition(b.GetStatus().Conditions, kind)
	if c == nil || c.ObservedGeneration != b.GetGeneration() || c.Status == metav1.ConditionUnknown {
		return nil
	}
	return c
}
