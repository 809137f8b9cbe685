// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/apply/availability"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// desiredStatus is the status of a work after its manifests had these outcomes.
// What could not be found out stays as it was reported before. Conditions that
// do not change keep their times.
func desiredStatus(work *placementv1beta1.Work, outcomes []outcome, now metav1.Time) placementv1beta1.WorkStatus {
	before := work.Status.DeepCopy()
	status := placementv1beta1.WorkStatus{Conditions: before.Conditions}
	for _, out := range outcomes {
		previous := reported(before.ManifestConditions, out.id)
		status.ManifestConditions = append(status.ManifestConditions, placementv1beta1.ManifestCondition{
			Identifier: out.id,
			Conditions: manifestConditions(previous, out, now),
		})
	}
	summarize(&status, work.Generation, now)
	return status
}

// reported is what was said before of a manifest, wherever it stood.
func reported(before []placementv1beta1.ManifestCondition, id placementv1beta1.WorkResourceIdentifier) []metav1.Condition {
	at := slices.IndexFunc(before, func(m placementv1beta1.ManifestCondition) bool { return m.Identifier == id })
	if at < 0 && id.Kind != "" {
		at = slices.IndexFunc(before, func(m placementv1beta1.ManifestCondition) bool {
			return manifest.KeyOf(m.Identifier) == manifest.KeyOf(id)
		})
	}
	if at < 0 {
		return nil
	}
	return slices.Clone(before[at].Conditions)
}

func manifestConditions(previous []metav1.Condition, out outcome, now metav1.Time) []metav1.Condition {
	unknown := out.err != nil || out.postponed > 0
	if unknown && len(previous) > 0 {
		return previous
	}
	if unknown {
		out.refused = &refusal{placementv1beta1.ReasonManifestApplyFailed, whyUnknown(out)}
	}
	conditions := previous
	apimeta.RemoveStatusCondition(&conditions, placementv1beta1.ConditionDiffReported)
	set := func(c metav1.Condition) {
		c.ObservedGeneration, c.LastTransitionTime = out.generation, now
		apimeta.SetStatusCondition(&conditions, c)
	}
	if out.refused != nil {
		apimeta.RemoveStatusCondition(&conditions, placementv1beta1.ConditionAvailable)
		set(metav1.Condition{
			Type:    placementv1beta1.ConditionApplied,
			Status:  metav1.ConditionFalse,
			Reason:  out.refused.reason,
			Message: out.refused.message,
		})
		return conditions
	}
	set(metav1.Condition{
		Type:    placementv1beta1.ConditionApplied,
		Status:  metav1.ConditionTrue,
		Reason:  placementv1beta1.ReasonApplied,
		Message: "The manifest is applied",
	})
	set(availableCondition(out.verdict))
	return conditions
}

func whyUnknown(out outcome) string {
	if out.err != nil {
		return explain(out.err, groupKind(manifest.KeyOf(out.id)))
	}
	return "The object is changed back as often as it is repaired: the next repair waits"
}

func availableCondition(verdict availability.Verdict) metav1.Condition {
	condition := metav1.Condition{
		Type:    placementv1beta1.ConditionAvailable,
		Status:  metav1.ConditionFalse,
		Reason:  string(verdict.State),
		Message: verdict.Message,
	}
	if verdict.State == availability.Available || verdict.State == availability.NotTrackable {
		condition.Status = metav1.ConditionTrue
	}
	return condition
}

// summarize sets the conditions of the whole Work from those of its manifests.
func summarize(status *placementv1beta1.WorkStatus, generation int64, now metav1.Time) {
	apimeta.RemoveStatusCondition(&status.Conditions, placementv1beta1.ConditionDiffReported)
	set := func(c metav1.Condition) {
		c.ObservedGeneration, c.LastTransitionTime = generation, now
		apimeta.SetStatusCondition(&status.Conditions, c)
	}
	applied := appliedSummary(status.ManifestConditions)
	set(applied)
	if applied.Status != metav1.ConditionTrue {
		apimeta.RemoveStatusCondition(&status.Conditions, placementv1beta1.ConditionAvailable)
		return
	}
	set(availableSummary(status.ManifestConditions))
}

func appliedSummary(manifests []placementv1beta1.ManifestCondition) metav1.Condition {
	condition := metav1.Condition{
		Type:    placementv1beta1.ConditionApplied,
		Status:  metav1.ConditionTrue,
		Reason:  placementv1beta1.ReasonAllManifestsApplied,
		Message: "All manifests are applied",
	}
	if text := firstOther(manifests, placementv1beta1.ConditionApplied, "applied"); text != "" {
		condition.Status = metav1.ConditionFalse
		condition.Reason = placementv1beta1.ReasonSomeManifestsAreNotApplied
		condition.Message = text
	}
	return condition
}

func availableSummary(manifests []placementv1beta1.ManifestCondition) metav1.Condition {
	condition := metav1.Condition{
		Type:    placementv1beta1.ConditionAvailable,
		Status:  metav1.ConditionTrue,
		Reason:  placementv1beta1.ReasonAllManifestsAvailable,
		Message: "All manifests are available",
	}
	if text := firstOther(manifests, placementv1beta1.ConditionAvailable, "available"); text != "" {
		condition.Status = metav1.ConditionFalse
		condition.Reason = placementv1beta1.ReasonSomeManifestsAreNotAvailable
		condition.Message = text
		return condition
	}
	untracked := slices.ContainsFunc(manifests, func(m placementv1beta1.ManifestCondition) bool {
		c := apimeta.FindStatusCondition(m.Conditions, placementv1beta1.ConditionAvailable)
		return c != nil && c.Reason == placementv1beta1.ReasonNotTrackable
	})
	if untracked {
		condition.Reason = placementv1beta1.ReasonWorkNotTrackable
		condition.Message = "All manifests that can be tracked are available"
	}
	return condition
}

// withoutDiff is the status of a work whose strategy asks for a report of
// differences, which this version does not make.
func withoutDiff(work *placementv1beta1.Work, items []item, now metav1.Time) placementv1beta1.WorkStatus {
	before := work.Status.DeepCopy()
	missing := metav1.Condition{
		Type:               placementv1beta1.ConditionDiffReported,
		Status:             metav1.ConditionFalse,
		LastTransitionTime: now,
		Reason:             placementv1beta1.ReasonFailedToReportDiff,
		Message:            "Strategy type ReportDiff is not served by this version; nothing was written",
	}
	status := placementv1beta1.WorkStatus{Conditions: before.Conditions}
	for _, it := range items {
		conditions := onlyDiff(reported(before.ManifestConditions, it.id))
		apimeta.SetStatusCondition(&conditions, missing)
		status.ManifestConditions = append(status.ManifestConditions,
			placementv1beta1.ManifestCondition{Identifier: it.id, Conditions: conditions})
	}
	status.Conditions = onlyDiff(status.Conditions)
	missing.Reason = placementv1beta1.ReasonSomeManifestsHaveNotReportedDiff
	missing.ObservedGeneration = work.Generation
	apimeta.SetStatusCondition(&status.Conditions, missing)
	return status
}

func onlyDiff(conditions []metav1.Condition) []metav1.Condition {
	return slices.DeleteFunc(conditions, func(c metav1.Condition) bool {
		return c.Type != placementv1beta1.ConditionDiffReported
	})
}

// firstOther tells how many manifests lack a condition and names the first;
// empty if none does.
func firstOther(manifests []placementv1beta1.ManifestCondition, condition, word string) string {
	count, first := 0, ""
	for _, m := range manifests {
		if apimeta.IsStatusConditionTrue(m.Conditions, condition) {
			continue
		}
		if count++; count == 1 {
			first = fmt.Sprintf("%s: %s", called(m.Identifier), whyNot(m.Conditions, condition))
		}
	}
	if count == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d manifests are not %s. %s", count, len(manifests), word, first)
}

func called(id placementv1beta1.WorkResourceIdentifier) string {
	if id.Kind == "" {
		return fmt.Sprintf("manifest %d", id.Ordinal)
	}
	return manifest.KeyOf(id).String()
}

func whyNot(conditions []metav1.Condition, condition string) string {
	if c := apimeta.FindStatusCondition(conditions, condition); c != nil {
		return c.Message
	}
	return "not known yet"
}

func groupKind(key manifest.Key) schema.GroupKind {
	return schema.GroupKind{Group: key.Group, Kind: key.Kind}
}
