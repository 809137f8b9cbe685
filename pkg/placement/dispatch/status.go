// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/naming"
)

// maxDetails limits the objects that a binding's status names per kind of problem.
const maxDetails = 100

// synced is the state of a binding's Works.
type synced struct {
	works []*placementv1beta1.Work
	// misfit is the reason why the overrides could not be applied, or "".
	misfit string
	// problem is the reason why the Works are not up to date, or "".
	problem string
	// noHeartbeat says since when the member has had no heartbeat, or "".
	noHeartbeat string
	// external says that only update runs start the rollout of the placement.
	external bool
}

// desiredStatus is the binding's status for its Works. The condition RolloutStarted stays if the
// rollout has set it for the current spec. Otherwise a bound binding means that the rollout has
// started, except under strategy External: there the scheduler may have written the current spec, so an
// update run says that it has started.
func desiredStatus(b placementv1beta1.BindingObject, s synced) placementv1beta1.ResourceBindingStatus {
	status := b.GetStatus().DeepCopy()
	d := dispatched{generation: b.GetGeneration(), status: status, works: s.works, noHeartbeat: s.noHeartbeat}
	c := meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionRolloutStarted)
	started := c == nil || c.ObservedGeneration != d.generation
	if s.external {
		started = placementv1beta1.StartedByRun(b)
	}
	if b.GetSpec().State == placementv1beta1.BindingBound && started {
		d.set(placementv1beta1.ConditionRolloutStarted, metav1.ConditionTrue, placementv1beta1.ReasonRolloutStarted, placementv1beta1.MessageRolloutStarted)
	}
	switch {
	case s.misfit != "":
		d.set(placementv1beta1.ConditionOverridden, metav1.ConditionFalse, placementv1beta1.ReasonOverriddenFailed, s.misfit)
		return *status
	case hasOverrides(b):
		d.set(placementv1beta1.ConditionOverridden, metav1.ConditionTrue, placementv1beta1.ReasonOverriddenSucceeded,
			"The override rules are applied to the selected resources")
	default:
		d.set(placementv1beta1.ConditionOverridden, metav1.ConditionTrue, placementv1beta1.ReasonNoOverrideSpecified,
			"No override rules are configured for the selected resources")
	}
	if s.problem != "" {
		d.set(placementv1beta1.ConditionWorkSynchronized, metav1.ConditionFalse, placementv1beta1.ReasonSyncWorkFailed, s.problem)
		return *status
	}
	d.set(placementv1beta1.ConditionWorkSynchronized, metav1.ConditionTrue, placementv1beta1.ReasonAllWorkSynced,
		"All of the works are synchronized to the latest")
	if strategy := b.GetSpec().ApplyStrategy; strategy != nil && strategy.Type == placementv1beta1.ReportDiff {
		d.diffReported()
	} else {
		d.applied()
	}
	d.details()
	return *status
}

type dispatched struct {
	generation  int64
	status      *placementv1beta1.ResourceBindingStatus
	works       []*placementv1beta1.Work
	noHeartbeat string
}

// awaited returns a sentence about a Work that waits for its member, with the reason if the member has
// no heartbeat.
func (d *dispatched) awaited(format, work string) string {
	sentence := fmt.Sprintf(format, work)
	if d.noHeartbeat == "" {
		return sentence
	}
	return sentence + ", and " + d.noHeartbeat
}

// set writes a condition. Its transition time is when it became true for this generation. A rollout
// waits from that time for resources whose availability is not trackable, and a new generation may be
// bad although the condition does not change.
func (d *dispatched) set(kind string, status metav1.ConditionStatus, reason, message string) {
	if c := meta.FindStatusCondition(d.status.Conditions, kind); c != nil && c.ObservedGeneration != d.generation {
		c.Status = "" // Then any status is a transition.
	}
	meta.SetStatusCondition(&d.status.Conditions, metav1.Condition{
		Type: kind, Status: status, ObservedGeneration: d.generation, Reason: reason, Message: message,
	})
}

func (d *dispatched) remove(kind string) { meta.RemoveStatusCondition(&d.status.Conditions, kind) }

func (d *dispatched) applied() {
	d.remove(placementv1beta1.ConditionDiffReported)
	pending, failed := d.split(placementv1beta1.ConditionApplied)
	switch {
	case failed != "":
		d.set(placementv1beta1.ConditionApplied, metav1.ConditionFalse, placementv1beta1.ReasonNotAllWorkHaveBeenApplied,
			fmt.Sprintf("Work %q is not applied", failed))
	case pending != "":
		d.set(placementv1beta1.ConditionApplied, metav1.ConditionFalse, placementv1beta1.ReasonApplyInProgress,
			d.awaited("Work %q is being applied", pending))
	default:
		d.set(placementv1beta1.ConditionApplied, metav1.ConditionTrue, placementv1beta1.ReasonAllWorkHaveBeenApplied,
			"All of the works have been applied"+d.remaining())
		d.available()
		return
	}
	d.remove(placementv1beta1.ConditionAvailable)
}

// remaining names what a member still has although it left its Work, as the end of a sentence. Clients
// of KubeFleet compare the types of conditions, so it is part of a message.
func (d *dispatched) remaining() string {
	for _, w := range d.works {
		for _, kind := range []string{placementv1beta1.ConditionRetained, placementv1beta1.ConditionRemoved} {
			c := meta.FindStatusCondition(w.Status.Conditions, kind)
			if c != nil && (c.Status == metav1.ConditionTrue) == (kind == placementv1beta1.ConditionRetained) {
				return fmt.Sprintf(", and the member still has objects that left work %q: %s", w.Name, c.Message)
			}
		}
	}
	return ""
}

func (d *dispatched) available() {
	pending, failed := d.split(placementv1beta1.ConditionAvailable)
	if first := cmp.Or(failed, pending); first != "" {
		d.set(placementv1beta1.ConditionAvailable, metav1.ConditionFalse, placementv1beta1.ReasonNotAllWorkAreAvailable,
			d.awaited("Work %q is not available yet", first))
		return
	}
	for _, w := range d.works {
		if current(w, placementv1beta1.ConditionAvailable).Reason == placementv1beta1.ReasonWorkNotTrackable {
			d.set(placementv1beta1.ConditionAvailable, metav1.ConditionTrue, placementv1beta1.ReasonNotAllWorkAreAvailabilityTrackable,
				fmt.Sprintf("The availability of work %q is not trackable", w.Name))
			return
		}
	}
	d.set(placementv1beta1.ConditionAvailable, metav1.ConditionTrue, placementv1beta1.ReasonAllWorkAreAvailable,
		"All of the works are available")
}

func (d *dispatched) diffReported() {
	d.remove(placementv1beta1.ConditionApplied)
	d.remove(placementv1beta1.ConditionAvailable)
	pending, failed := d.split(placementv1beta1.ConditionDiffReported)
	switch {
	case failed != "":
		d.set(placementv1beta1.ConditionDiffReported, metav1.ConditionFalse, placementv1beta1.ReasonNotAllWorkHaveDiffReported,
			fmt.Sprintf("Work %q has not reported its differences: %s", failed, current(workNamed(d.works, failed), placementv1beta1.ConditionDiffReported).Message))
	case pending != "":
		d.set(placementv1beta1.ConditionDiffReported, metav1.ConditionFalse, placementv1beta1.ReasonDiffReportInProgress,
			d.awaited("Work %q is finding its differences", pending))
	default:
		d.set(placementv1beta1.ConditionDiffReported, metav1.ConditionTrue, placementv1beta1.ReasonAllWorkHaveDiffReported,
			"All of the works have reported their differences")
	}
}

// split names the first Work without a condition for its current spec, and the first whose condition is
// False.
func (d *dispatched) split(kind string) (pending, failed string) {
	for _, w := range d.works {
		switch c := current(w, kind); {
		case c == nil || c.Status == metav1.ConditionUnknown:
			pending = cmp.Or(pending, w.Name)
		case c.Status == metav1.ConditionFalse:
			failed = cmp.Or(failed, w.Name)
		}
	}
	return pending, failed
}

// current returns the condition if it is about the Work's current spec, or nil.
func current(w *placementv1beta1.Work, kind string) *metav1.Condition {
	c := meta.FindStatusCondition(w.Status.Conditions, kind)
	if c == nil || c.ObservedGeneration != w.Generation {
		return nil
	}
	return c
}

// details names the objects with problems.
func (d *dispatched) details() {
	d.status.FailedPlacements, d.status.DriftedPlacements, d.status.DiffedPlacements = nil, nil, nil
	for _, w := range d.works {
		envelope := envelopeOf(w)
		for i := range w.Status.ManifestConditions {
			d.detail(&w.Status.ManifestConditions[i], envelope)
		}
	}
	withinBudget(d.status)
}

// envelopeOf is the envelope of a Work, or nil.
func envelopeOf(w *placementv1beta1.Work) *placementv1beta1.EnvelopeIdentifier {
	if w.Labels[placementv1beta1.EnvelopeNameLabel] == "" {
		return nil
	}
	return &placementv1beta1.EnvelopeIdentifier{
		Name:      naming.Labelled(w, placementv1beta1.EnvelopeNameLabel),
		Namespace: w.Labels[placementv1beta1.EnvelopeNamespaceLabel],
		Type:      placementv1beta1.EnvelopeType(w.Labels[placementv1beta1.EnvelopeTypeLabel]),
	}
}

func (d *dispatched) detail(m *placementv1beta1.ManifestCondition, envelope *placementv1beta1.EnvelopeIdentifier) {
	s, id := d.status, placementv1beta1.ResourceIdentifier{
		Group: m.Identifier.Group, Version: m.Identifier.Version, Kind: m.Identifier.Kind,
		Name: m.Identifier.Name, Namespace: m.Identifier.Namespace, Envelope: envelope,
	}
	if c := firstFalse(m); c != nil && len(s.FailedPlacements) < maxDetails {
		s.FailedPlacements = append(s.FailedPlacements, placementv1beta1.FailedResourcePlacement{ResourceIdentifier: id, Condition: *c})
	}
	if drift := m.DriftDetails; drift != nil && len(s.DriftedPlacements) < maxDetails {
		s.DriftedPlacements = append(s.DriftedPlacements, placementv1beta1.DriftedResourcePlacement{
			ResourceIdentifier: id, ObservationTime: drift.ObservationTime,
			TargetClusterObservedGeneration: drift.ObservedInMemberClusterGeneration,
			FirstDriftedObservedTime:        drift.FirstDriftedObservedTime, ObservedDrifts: drift.ObservedDrifts,
		})
	}
	if diff := m.DiffDetails; diff != nil && len(s.DiffedPlacements) < maxDetails {
		s.DiffedPlacements = append(s.DiffedPlacements, placementv1beta1.DiffedResourcePlacement{
			ResourceIdentifier: id, ObservationTime: diff.ObservationTime,
			TargetClusterObservedGeneration: diff.ObservedInMemberClusterGeneration,
			FirstDiffedObservedTime:         diff.FirstDiffedObservedTime, ObservedDiffs: diff.ObservedDiffs,
		})
	}
}

// firstFalse is the first condition of an object that is False, in the order in which they become True.
func firstFalse(m *placementv1beta1.ManifestCondition) *metav1.Condition {
	kinds := []string{placementv1beta1.ConditionApplied, placementv1beta1.ConditionAvailable, placementv1beta1.ConditionDiffReported}
	for _, kind := range kinds {
		i := slices.IndexFunc(m.Conditions, func(c metav1.Condition) bool { return c.Type == kind && c.Status == metav1.ConditionFalse })
		if i >= 0 && kind == placementv1beta1.ConditionDiffReported && m.Conditions[i].Reason == placementv1beta1.ReasonDecodingErred {
			continue // KubeFleet's clients find it in the conditions only
		}
		if i >= 0 {
			return &m.Conditions[i]
		}
	}
	return nil
}
