// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/engine/availability"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// desiredStatus is the status of a work after its manifests had these outcomes.
// What could not be found out stays as it was reported before. What does not
// change keeps its times.
func desiredStatus(work *placementv1beta1.Work, outcomes []engine.Outcome, now metav1.Time) placementv1beta1.WorkStatus {
	before := work.Status.DeepCopy()
	comparing := withDefaults(work.Spec.ApplyStrategy).Type == placementv1beta1.ReportDiff
	status := placementv1beta1.WorkStatus{Conditions: before.Conditions}
	for _, out := range outcomes {
		previous := reported(before.ManifestConditions, placementv1beta1.WorkResourceIdentifier(out.Ref))
		status.ManifestConditions = append(status.ManifestConditions, manifestStatus(previous, out, comparing, now))
	}
	s := summary{status: &status, generation: work.Generation, now: now}
	if comparing {
		s.compared()
	} else {
		s.applied()
	}
	s.contested()
	s.trimmed(work)
	return status
}

// reported is what was said before of a manifest, wherever it stood.
func reported(before []placementv1beta1.ManifestCondition, id placementv1beta1.WorkResourceIdentifier) placementv1beta1.ManifestCondition {
	at := slices.IndexFunc(before, func(m placementv1beta1.ManifestCondition) bool { return m.Identifier == id })
	if at < 0 && id.Kind != "" {
		at = slices.IndexFunc(before, func(m placementv1beta1.ManifestCondition) bool {
			return manifest.KeyOf(manifest.Ref(m.Identifier)) == manifest.KeyOf(manifest.Ref(id))
		})
	}
	if at < 0 {
		return placementv1beta1.ManifestCondition{}
	}
	return *before[at].DeepCopy()
}

// manifestStatus is what is said of one manifest. Comparing says that it was not to
// be applied.
func manifestStatus(previous placementv1beta1.ManifestCondition, out engine.Outcome, comparing bool, now metav1.Time) placementv1beta1.ManifestCondition {
	next := previous
	next.Identifier = placementv1beta1.WorkResourceIdentifier(out.Ref)
	m := manifestReport{conditions: &next.Conditions, generation: out.Generation, now: now}
	m.contested(out.Against)
	if out.Err != nil || out.Postponed > 0 {
		main := placementv1beta1.ConditionApplied
		if comparing {
			main = placementv1beta1.ConditionDiffReported
		}
		if apimeta.FindStatusCondition(next.Conditions, main) != nil {
			return next
		}
		out.Refused = &engine.Refusal{Cause: engine.NotWritten, Message: whyUnknown(out)}
	}
	if comparing {
		m.compared(out)
	} else {
		m.applied(out)
	}
	next.DriftDetails = driftDetails(previous.DriftDetails, out, now)
	next.DiffDetails = diffDetails(previous.DiffDetails, out, now)
	next.BackReportedStatus = backReported(previous.BackReportedStatus, out, now)
	return next
}

// sameStatus reports whether two statuses say the same. Every look asks, mostly of a
// hundred manifests that are as they were: comparing them by reflection would cost
// more than the rest of the look.
func sameStatus(a, b *placementv1beta1.WorkStatus) bool {
	return slices.EqualFunc(a.Conditions, b.Conditions, sameCondition) &&
		slices.EqualFunc(a.ManifestConditions, b.ManifestConditions, func(a, b placementv1beta1.ManifestCondition) bool {
			return a.Identifier == b.Identifier && slices.EqualFunc(a.Conditions, b.Conditions, sameCondition) &&
				same(a.DriftDetails, b.DriftDetails) && same(a.DiffDetails, b.DiffDetails) &&
				same(a.BackReportedStatus, b.BackReportedStatus)
		})
}

func sameCondition(a, b metav1.Condition) bool {
	sameTime := a.LastTransitionTime.Equal(&b.LastTransitionTime)
	a.LastTransitionTime = b.LastTransitionTime
	return sameTime && a == b
}

// same compares what few manifests have.
func same[T any](a, b *T) bool {
	return a == nil && b == nil || apiequality.Semantic.DeepEqual(a, b)
}

// manifestReport writes the conditions of one manifest.
type manifestReport struct {
	conditions *[]metav1.Condition
	generation int64
	now        metav1.Time
}

func (m manifestReport) set(c metav1.Condition) {
	c.ObservedGeneration, c.LastTransitionTime = m.generation, m.now
	apimeta.SetStatusCondition(m.conditions, c)
}

func (m manifestReport) remove(kinds ...string) {
	for _, kind := range kinds {
		apimeta.RemoveStatusCondition(m.conditions, kind)
	}
}

func (m manifestReport) contested(against *engine.Contest) {
	if against == nil {
		m.remove(placementv1beta1.ConditionContested)
		return
	}
	m.set(metav1.Condition{
		Type:    placementv1beta1.ConditionContested,
		Status:  metav1.ConditionTrue,
		Reason:  placementv1beta1.ReasonRepairsReverted,
		Message: against.Message(dialect().Remedies.Contested),
	})
}

func (m manifestReport) applied(out engine.Outcome) {
	m.remove(placementv1beta1.ConditionDiffReported)
	if out.Refused != nil {
		m.remove(placementv1beta1.ConditionAvailable)
		m.set(metav1.Condition{
			Type:    placementv1beta1.ConditionApplied,
			Status:  metav1.ConditionFalse,
			Reason:  reasonOf(out.Refused.Cause),
			Message: out.Refused.Message,
		})
		return
	}
	m.set(metav1.Condition{
		Type:    placementv1beta1.ConditionApplied,
		Status:  metav1.ConditionTrue,
		Reason:  placementv1beta1.ReasonApplied,
		Message: "The manifest is applied",
	})
	m.set(availableCondition(out.Verdict))
}

func (m manifestReport) compared(out engine.Outcome) {
	m.remove(placementv1beta1.ConditionApplied, placementv1beta1.ConditionAvailable)
	condition := metav1.Condition{
		Type:    placementv1beta1.ConditionDiffReported,
		Status:  metav1.ConditionTrue,
		Reason:  placementv1beta1.ReasonNoDiffFound,
		Message: "The object is as the manifest wants it",
	}
	switch {
	case out.Refused != nil:
		condition.Status, condition.Reason = metav1.ConditionFalse, placementv1beta1.ReasonFailedToReportDiff
		condition.Message = out.Refused.Message
	case out.Diff.Degraded:
		condition.Reason = placementv1beta1.ReasonFoundDiffInDegradedMode
		condition.Message = "The object differs; all fields were compared, since the member does not accept the manifest"
	case len(out.Diff.Fields) > 0:
		condition.Reason = placementv1beta1.ReasonFoundDiff
		condition.Message = "The object differs from the manifest"
	}
	m.set(condition)
}

func whyUnknown(out engine.Outcome) string {
	if out.Err != nil {
		words := dialect()
		return words.Explain(out.Err, out.Ref.GroupKind())
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

// summary writes the conditions of the whole Work from those of its manifests.
type summary struct {
	status     *placementv1beta1.WorkStatus
	generation int64
	now        metav1.Time
}

func (s summary) set(c metav1.Condition) {
	c.ObservedGeneration, c.LastTransitionTime = s.generation, s.now
	apimeta.SetStatusCondition(&s.status.Conditions, c)
}

func (s summary) remove(kinds ...string) {
	for _, kind := range kinds {
		apimeta.RemoveStatusCondition(&s.status.Conditions, kind)
	}
}

func (s summary) applied() {
	s.remove(placementv1beta1.ConditionDiffReported)
	applied := appliedSummary(s.status.ManifestConditions)
	s.set(applied)
	if applied.Status != metav1.ConditionTrue {
		s.remove(placementv1beta1.ConditionAvailable)
		return
	}
	s.set(availableSummary(s.status.ManifestConditions))
}

func (s summary) compared() {
	s.remove(placementv1beta1.ConditionApplied, placementv1beta1.ConditionAvailable)
	condition := metav1.Condition{
		Type:    placementv1beta1.ConditionDiffReported,
		Status:  metav1.ConditionTrue,
		Reason:  placementv1beta1.ReasonAllManifestsDiffReported,
		Message: "All manifests are compared",
	}
	if text := firstOther(s.status.ManifestConditions, placementv1beta1.ConditionDiffReported, "compared"); text != "" {
		condition.Status = metav1.ConditionFalse
		condition.Reason = placementv1beta1.ReasonSomeManifestsHaveNotReportedDiff
		condition.Message = text
	}
	s.set(condition)
}

func (s summary) contested() {
	for _, m := range s.status.ManifestConditions {
		c := apimeta.FindStatusCondition(m.Conditions, placementv1beta1.ConditionContested)
		if c == nil {
			continue
		}
		s.set(metav1.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason,
			Message: engine.Shorten(manifest.Ref(m.Identifier).String() + ": " + c.Message)})
		return
	}
	s.remove(placementv1beta1.ConditionContested)
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

// firstOther tells how many manifests lack a condition and names the first;
// empty if none does.
func firstOther(manifests []placementv1beta1.ManifestCondition, condition, word string) string {
	count, first := 0, ""
	for _, m := range manifests {
		if apimeta.IsStatusConditionTrue(m.Conditions, condition) {
			continue
		}
		if count++; count == 1 {
			first = fmt.Sprintf("%s: %s", manifest.Ref(m.Identifier), whyNot(m.Conditions, condition))
		}
	}
	if count == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d manifests are not %s. %s", count, len(manifests), word, first)
}

func whyNot(conditions []metav1.Condition, condition string) string {
	if c := apimeta.FindStatusCondition(conditions, condition); c != nil {
		return c.Message
	}
	return "not known yet"
}

// setRemoved says what stands against removing objects, the first in order.
func setRemoved(status *placementv1beta1.WorkStatus, against []string, generation int64, now metav1.Time) {
	if len(against) == 0 {
		apimeta.RemoveStatusCondition(&status.Conditions, placementv1beta1.ConditionRemoved)
		return
	}
	apimeta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type:               placementv1beta1.ConditionRemoved,
		Status:             metav1.ConditionFalse,
		ObservedGeneration: generation,
		LastTransitionTime: now,
		Reason:             placementv1beta1.ReasonObjectsRemain,
		Message:            engine.Shorten(slices.Min(against)),
	})
}

// setWatched says which of a Work's resources the agent may not watch, and how often
// it looks at them instead.
func setWatched(status *placementv1beta1.WorkStatus, blind []schema.GroupVersionResource, every time.Duration, generation int64, now metav1.Time) {
	if len(blind) == 0 {
		apimeta.RemoveStatusCondition(&status.Conditions, placementv1beta1.ConditionWatched)
		return
	}
	first := blind[0].GroupResource()
	apimeta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type:               placementv1beta1.ConditionWatched,
		Status:             metav1.ConditionFalse,
		ObservedGeneration: generation,
		LastTransitionTime: now,
		Reason:             placementv1beta1.ReasonMayNotWatch,
		Message: fmt.Sprintf("Changes on the member are seen only every %s: the agent may not watch %s. Its role lacks the rule %s",
			every, first, engine.Rule(first.Group, first.Resource, "list", "watch")),
	})
}
