// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/engine/availability"
	"fleetgate.io/fleetgate/pkg/work/manifest"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

// desiredStatus returns the status of a Work for these results. If a result is unknown, the
// reported state stays. Times of unchanged parts stay.
func desiredStatus(work *placementv1beta1.Work, results []engine.ManifestResult, now metav1.Time) placementv1beta1.WorkStatus {
	before := work.Status.DeepCopy()
	comparing := work.Spec.ApplyStrategy.WithDefaults().Type == placementv1beta1.ReportDiff
	status := placementv1beta1.WorkStatus{Conditions: before.Conditions}
	for _, out := range results {
		previous := reported(before.ManifestConditions, placementv1beta1.WorkResourceIdentifier(out.Ref))
		status.ManifestConditions = append(status.ManifestConditions, manifestStatus(previous, out, comparing, now))
	}
	s := summary{conditionsOf(&status.Conditions, work.Generation, now), status.ManifestConditions}
	if comparing {
		s.compared()
	} else {
		s.applied()
	}
	s.contested()
	s.trimmed(work, &status)
	return status
}

// reported returns the last reported status of a manifest, whatever its ordinal was.
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

// manifestStatus returns the status of one manifest. comparing is set for strategy ReportDiff.
func manifestStatus(previous placementv1beta1.ManifestCondition, out engine.ManifestResult, comparing bool, now metav1.Time) placementv1beta1.ManifestCondition {
	next := previous
	next.Identifier = placementv1beta1.WorkResourceIdentifier(out.Ref)
	m := conditionsOf(&next.Conditions, out.Generation, now)
	m.contested(out.Contest)
	if out.Err != nil || out.Postponed > 0 {
		main := placementv1beta1.ConditionApplied
		if comparing {
			main = placementv1beta1.ConditionDiffReported
		}
		if apimeta.FindStatusCondition(next.Conditions, main) != nil {
			return next
		}
		out.Refused = &refusal.Refusal{Reason: engine.NotWritten, Message: whyUnknown(out)}
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

// sameStatus compares two statuses. It runs in every reconcile, mostly for a hundred unchanged
// manifests; reflection would cost more than the rest of the reconcile.
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

// same compares optional parts, which few manifests have.
func same[T any](a, b *T) bool {
	return a == nil && b == nil || apiequality.Semantic.DeepEqual(a, b)
}

// conditions sets the conditions of a manifest or a Work.
type conditions struct{ engine.Conditions }

func conditionsOf(of *[]metav1.Condition, generation int64, now metav1.Time) conditions {
	return conditions{engine.Conditions{Of: of, Generation: generation, Now: now}}
}

func (c conditions) yes(kind, reason, message string) {
	c.Set(kind, metav1.ConditionTrue, reason, message)
}

func (c conditions) no(kind, reason, message string) {
	c.Set(kind, metav1.ConditionFalse, reason, message)
}

func (c conditions) contested(against *engine.Contest) {
	c.Contested(placementv1beta1.ConditionContested, placementv1beta1.ReasonCorrectionsReverted, against, dialect().Remedies.Contested)
}

func (c conditions) applied(out engine.ManifestResult) {
	c.Remove(placementv1beta1.ConditionDiffReported)
	if out.Refused != nil {
		c.Remove(placementv1beta1.ConditionAvailable)
		c.no(placementv1beta1.ConditionApplied, reasonOf(out.Refused.Reason), out.Refused.Message)
		return
	}
	c.yes(placementv1beta1.ConditionApplied, placementv1beta1.ReasonApplied, appliedMessage(out))
	status := metav1.ConditionFalse
	switch out.Availability.State {
	case availability.Available, availability.NotTrackable, availability.Completed:
		status = metav1.ConditionTrue
	}
	c.Set(placementv1beta1.ConditionAvailable, status, string(out.Availability.State), out.Availability.Message)
}

// appliedMessage is the message of condition Applied, with the fields that the member decides.
func appliedMessage(out engine.ManifestResult) string {
	if len(out.Left) == 0 {
		return "The manifest is applied"
	}
	return engine.Shorten("The manifest is applied. The member decides " + strings.Join(out.Left, ", "))
}

func (c conditions) compared(out engine.ManifestResult) {
	const kind = placementv1beta1.ConditionDiffReported
	c.Remove(placementv1beta1.ConditionApplied, placementv1beta1.ConditionAvailable)
	switch {
	case out.Refused != nil && reasonOf(out.Refused.Reason) == placementv1beta1.ReasonDecodingErred:
		c.no(kind, placementv1beta1.ReasonDecodingErred, out.Refused.Message)
	case out.Refused != nil:
		c.no(kind, placementv1beta1.ReasonFailedToReportDiff, out.Refused.Message)
	case out.Diff.Degraded:
		c.yes(kind, placementv1beta1.ReasonFoundDiffInDegradedMode,
			"The object differs; all fields were compared, since the member does not accept the manifest")
	case len(out.Diff.Fields) > 0:
		c.yes(kind, placementv1beta1.ReasonFoundDiff, "The object differs from the manifest")
	default:
		c.yes(kind, placementv1beta1.ReasonNoDiffFound, "The object is as the manifest wants it")
	}
}

// removed reports what blocks the removal of objects.
func (c conditions) removed(against []string) {
	c.Removed(placementv1beta1.ConditionRemoved, placementv1beta1.ReasonObjectsRemain, against)
}

// retained reports the objects that are no longer in the Work and stay on the member because no
// user removed them.
func (c conditions) retained(of retention.Mark, entries []engine.Entry) {
	c.Remove(placementv1beta1.PreviousRetained)
	if len(entries) == 0 {
		c.Remove(placementv1beta1.ConditionRetained)
		return
	}
	reason, why := placementv1beta1.ReasonHubRestored, "The hub was restored to an earlier state, or is another hub"
	if of.Another {
		reason, why = placementv1beta1.ReasonWorkReplaced, "The Work replaced another one of the same name"
	}
	c.yes(placementv1beta1.ConditionRetained, reason, fmt.Sprintf(
		"%s: the member retains %d objects that are no longer in the Work. The first is %s. "+
			"Place them again, or release them: annotate the MemberCluster with %s=%s",
		why, len(entries), manifest.KeyOf(entries[0].Ref), clusterv1beta1.AnnotationRelease, of.ID))
}

// watched names the first resource that the agent cannot watch, and the interval at which it reads
// it instead.
func (c conditions) watched(unwatched []schema.GroupVersionResource, every time.Duration) {
	if len(unwatched) == 0 {
		c.Remove(placementv1beta1.ConditionWatched)
		return
	}
	first := unwatched[0].GroupResource()
	c.no(placementv1beta1.ConditionWatched, placementv1beta1.ReasonWatchForbidden, fmt.Sprintf(
		"The agent cannot watch %s, and detects changes on the member only every %s: its role lacks the rule %s",
		first, every, engine.Rule(first.Group, first.Resource, "list", "watch")))
}

func whyUnknown(out engine.ManifestResult) string {
	words := dialect()
	return words.WhyUnknown(out)
}

// summary derives the conditions of a Work from those of its manifests.
type summary struct {
	conditions
	manifests []placementv1beta1.ManifestCondition
}

// all sets a condition to True, with reason and message, if all manifests have it; otherwise to
// False with the reason otherwise.
func (s summary) all(kind, word, reason, message, otherwise string) bool {
	if text := firstOther(s.manifests, kind, word); text != "" {
		s.no(kind, otherwise, text)
		return false
	}
	s.yes(kind, reason, message)
	return true
}

func (s summary) applied() {
	s.Remove(placementv1beta1.ConditionDiffReported)
	if !s.all(placementv1beta1.ConditionApplied, "applied", placementv1beta1.ReasonAllManifestsApplied, "All manifests are applied",
		placementv1beta1.ReasonSomeManifestsAreNotApplied) {
		s.Remove(placementv1beta1.ConditionAvailable)
		return
	}
	reason, message := placementv1beta1.ReasonAllManifestsAvailable, "All manifests are available"
	if slices.ContainsFunc(s.manifests, isNotTracked) {
		reason, message = placementv1beta1.ReasonWorkNotTrackable, "All manifests that can be tracked are available"
	}
	s.all(placementv1beta1.ConditionAvailable, "available", reason, message, placementv1beta1.ReasonSomeManifestsAreNotAvailable)
}

// isNotTracked reports whether the Work does not wait for a manifest to become available. Clients
// of KubeFleet expect WorkNotTrackable for a Work with a Job at any time, also after the Job
// completed.
func isNotTracked(m placementv1beta1.ManifestCondition) bool {
	c := apimeta.FindStatusCondition(m.Conditions, placementv1beta1.ConditionAvailable)
	return c != nil && (c.Reason == placementv1beta1.ReasonNotTrackable || c.Reason == placementv1beta1.ReasonCompleted)
}

func (s summary) compared() {
	s.Remove(placementv1beta1.ConditionApplied, placementv1beta1.ConditionAvailable)
	s.all(placementv1beta1.ConditionDiffReported, "compared", placementv1beta1.ReasonAllManifestsDiffReported, "All manifests are compared",
		placementv1beta1.ReasonSomeManifestsHaveNotReportedDiff)
}

func (s summary) contested() {
	for _, m := range s.manifests {
		if c := apimeta.FindStatusCondition(m.Conditions, placementv1beta1.ConditionContested); c != nil {
			s.Set(c.Type, c.Status, c.Reason, engine.Shorten(manifest.Ref(m.Identifier).String()+": "+c.Message))
			return
		}
	}
	s.Remove(placementv1beta1.ConditionContested)
}

// firstOther counts the manifests without a condition and names the first; empty if there is none.
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
