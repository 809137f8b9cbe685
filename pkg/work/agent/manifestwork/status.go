// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"fmt"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/engine/availability"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// desiredStatus returns the status of a ManifestWork for these results. Times of unchanged parts
// stay.
func desiredStatus(work *workv1.ManifestWork, results []engine.ManifestResult, now metav1.Time) workv1.ManifestWorkStatus {
	before := work.Status.DeepCopy()
	t := shared{isResting(work), apimeta.IsStatusConditionTrue(before.Conditions, conditionTrimmed), work.Generation, now}
	status := workv1.ManifestWorkStatus{Conditions: before.Conditions}
	for _, out := range results {
		previous := reported(before.ResourceStatus.Manifests, out.Ref)
		status.ResourceStatus.Manifests = append(status.ResourceStatus.Manifests, manifestStatus(previous, out, t))
	}
	sum := conditionsOf(&status.Conditions, work.Generation, now)
	sum.workApplied(status.ResourceStatus.Manifests)
	sum.workAvailable(status.ResourceStatus.Manifests)
	for _, c := range aggregated(status.ResourceStatus.Manifests) {
		sum.Set(c.Type, c.Status, c.Reason, c.Message)
	}
	sum.prune()
	sum.trimmed(work, &status)
	return status
}

// isResting reports whether a ManifestWork is Complete; the agent no longer writes its objects
// then.
func isResting(work *workv1.ManifestWork) bool {
	return apimeta.IsStatusConditionTrue(work.Status.Conditions, workv1.ConditionComplete)
}

// reported returns the last reported status of a manifest, whatever its ordinal was.
func reported(before []workv1.ManifestCondition, ref manifest.Ref) workv1.ManifestCondition {
	id := metaOf(ref)
	at := slices.IndexFunc(before, func(m workv1.ManifestCondition) bool { return m.ResourceMeta == id })
	if at < 0 && ref.Kind != "" {
		at = slices.IndexFunc(before, func(m workv1.ManifestCondition) bool {
			return manifest.KeyOf(refOf(m.ResourceMeta)) == manifest.KeyOf(ref)
		})
	}
	if at < 0 {
		return workv1.ManifestCondition{}
	}
	return *before[at].DeepCopy()
}

func metaOf(ref manifest.Ref) workv1.ManifestResourceMeta {
	return workv1.ManifestResourceMeta{Ordinal: int32(ref.Ordinal), Group: ref.Group, Version: ref.Version, Kind: ref.Kind,
		Resource: ref.Resource, Name: ref.Name, Namespace: ref.Namespace}
}

func refOf(meta workv1.ManifestResourceMeta) manifest.Ref {
	return manifest.Ref{Ordinal: int(meta.Ordinal), Group: meta.Group, Version: meta.Version, Kind: meta.Kind,
		Resource: meta.Resource, Name: meta.Name, Namespace: meta.Namespace}
}

// shared holds what all manifests of a ManifestWork share.
type shared struct {
	// rests is set if the objects were only read, because the ManifestWork is Complete.
	rests bool
	// trimmed is set if the last status omitted values.
	trimmed    bool
	generation int64
	now        metav1.Time
}

func manifestStatus(previous workv1.ManifestCondition, out engine.ManifestResult, t shared) workv1.ManifestCondition {
	next := previous
	next.ResourceMeta = metaOf(out.Ref)
	applied := conditionsOf(&next.Conditions, t.generation, t.now)
	if !t.rests || apimeta.FindStatusCondition(next.Conditions, workv1.ConditionApplied) == nil {
		applied.manifestApplied(out)
	}
	// Conditions about the object do not depend on the ManifestWork's generation.
	object := conditionsOf(&next.Conditions, 0, t.now)
	object.manifestAvailable(out)
	if found, ok := out.Examined.(*examined); ok {
		leftOut := t.trimmed && len(previous.StatusFeedback.Values) == 0
		object.feedback(found, !leftOut && !apiequality.Semantic.DeepEqual(previous.StatusFeedback.Values, found.values))
		next.StatusFeedback.Values = found.values
		for _, c := range found.rules {
			applied.Set(c.Type, c.Status, c.Reason, c.Message)
		}
		applied.prune()
	}
	applied.contested(out.Contest)
	return next
}

// conditions sets the conditions of a manifest or a ManifestWork.
type conditions struct{ engine.Conditions }

func conditionsOf(of *[]metav1.Condition, generation int64, now metav1.Time) conditions {
	return conditions{engine.Conditions{Of: of, Generation: generation, Now: now}}
}

// prune removes conditions of deleted rules. Those of existing rules were set for this generation.
func (c conditions) prune() {
	*c.Of = slices.DeleteFunc(*c.Of, func(merged metav1.Condition) bool { return byRule(merged) && merged.ObservedGeneration != c.Generation })
}

// manifestApplied sets condition Applied. If the result is unknown, the previous condition stays,
// except for its generation.
func (c conditions) manifestApplied(out engine.ManifestResult) {
	before := apimeta.FindStatusCondition(*c.Of, workv1.ConditionApplied)
	switch {
	case (out.Err != nil || out.Postponed > 0) && before != nil:
		if out.Postponed > 0 {
			c.Set(before.Type, before.Status, before.Reason, before.Message)
		}
	case out.Err != nil || out.Postponed > 0:
		c.notApplied(whyUnknown(out))
	case out.Refused != nil && out.Refused.Reason == ignoreFields:
		c.Set(workv1.ConditionApplied, metav1.ConditionFalse, workv1.ReasonIgnoreFields, "Failed to process ignoreFields: "+out.Refused.Message)
	case out.Refused != nil:
		c.notApplied(out.Refused.Message)
	default:
		c.Set(workv1.ConditionApplied, metav1.ConditionTrue, workv1.ReasonManifestApplied, "Apply manifest complete")
	}
}

func (c conditions) notApplied(why string) {
	c.Set(workv1.ConditionApplied, metav1.ConditionFalse, workv1.ReasonManifestNotApplied, "Failed to apply manifest: "+why)
}

func whyUnknown(out engine.ManifestResult) string {
	words := dialect()
	return words.WhyUnknown(out)
}

// reasonCompleted is set on an object that ran to completion and is gone. OCM does not have it.
const reasonCompleted = "Completed"

// manifestAvailable sets condition Available: whether the object exists. An object that ran to
// completion and is gone counts as available.
func (c conditions) manifestAvailable(out engine.ManifestResult) {
	const kind = workv1.ConditionAvailable
	switch {
	case out.UID != "":
		c.Set(kind, metav1.ConditionTrue, workv1.ReasonResourceAvailable, "Resource is available")
	case out.Availability.State == availability.Completed:
		c.Set(kind, metav1.ConditionTrue, reasonCompleted, out.Availability.Message)
	case out.Availability.State != "" && out.Refused == nil && out.Err == nil:
		c.Set(kind, metav1.ConditionFalse, workv1.ReasonResourceNotAvailable, out.Availability.Message)
	case out.Ref.Resource == "" || out.Ref.Version == "" || out.Ref.Name == "":
		c.Set(kind, metav1.ConditionUnknown, workv1.ReasonIncompleteMeta, "Resource meta is incomplete")
	case out.Err != nil:
		c.Set(kind, metav1.ConditionUnknown, workv1.ReasonFetchingFailed, "Failed to fetch resource: "+whyUnknown(out))
	case out.Refused != nil && isWithoutRead(out.Refused.Reason):
		c.Set(kind, metav1.ConditionUnknown, workv1.ReasonFetchingFailed, "Failed to fetch resource: "+out.Refused.Message)
	default:
		c.Set(kind, metav1.ConditionFalse, workv1.ReasonResourceNotAvailable, "Resource is not available")
	}
}

// isWithoutRead reports whether the engine refused a manifest without reading its object.
func isWithoutRead(reason string) bool {
	switch reason {
	case engine.NotFound, engine.Kept, engine.Duplicated, engine.Unserved, engine.NotAcceptable, engine.NotRecorded:
		return true
	}
	return false
}

// feedback sets condition StatusFeedbackSynced. Its time is that of the last change of a value.
func (c conditions) feedback(found *examined, changed bool) {
	const kind = workv1.ConditionStatusFeedbackSynced
	if changed {
		for i := range *c.Of {
			if (*c.Of)[i].Type == kind {
				(*c.Of)[i].LastTransitionTime = c.Now
			}
		}
	}
	switch {
	case found.failure != nil:
		c.Set(kind, metav1.ConditionFalse, workv1.ReasonFeedbackFailed, engine.Shorten("Sync status feedback failed with error "+found.failure.Error()))
	case !found.hasRules:
		c.Set(kind, metav1.ConditionTrue, workv1.ReasonNoFeedback, "")
	default:
		c.Set(kind, metav1.ConditionTrue, workv1.ReasonFeedbackSynced, "")
	}
}

// conditionContested is on a manifest while another client reverts the agent's corrections of its
// object. OCM does not have it.
const (
	conditionContested        = "Contested"
	reasonCorrectionsReverted = "CorrectionsReverted"
)

func (c conditions) contested(against *engine.Contest) {
	c.Contested(conditionContested, reasonCorrectionsReverted, against, dialect().Remedies.Contested)
}

func (c conditions) workApplied(manifests []workv1.ManifestCondition) {
	for _, m := range manifests {
		if !apimeta.IsStatusConditionTrue(m.Conditions, workv1.ConditionApplied) {
			c.Set(workv1.ConditionApplied, metav1.ConditionFalse, workv1.ReasonWorkNotApplied, "Failed to apply manifest work")
			return
		}
	}
	c.Set(workv1.ConditionApplied, metav1.ConditionTrue, workv1.ReasonWorkApplied, "Apply manifest work complete")
}

func (c conditions) workAvailable(manifests []workv1.ManifestCondition) {
	count := map[metav1.ConditionStatus]int{}
	for _, m := range manifests {
		if merged := apimeta.FindStatusCondition(m.Conditions, workv1.ConditionAvailable); merged != nil {
			count[merged.Status]++
		}
	}
	const kind = workv1.ConditionAvailable
	switch missing, unknown := count[metav1.ConditionFalse], count[metav1.ConditionUnknown]; {
	case missing > 0:
		c.Set(kind, metav1.ConditionFalse, workv1.ReasonResourcesNotAvailable,
			fmt.Sprintf("%d of %d resources are not available", missing, len(manifests)))
	case unknown > 0:
		c.Set(kind, metav1.ConditionUnknown, workv1.ReasonResourcesUnknown,
			fmt.Sprintf("%d of %d resources have unknown status", unknown, len(manifests)))
	case count[metav1.ConditionTrue] == 0:
		c.Set(kind, metav1.ConditionUnknown, workv1.ReasonResourcesUnknown, "cannot get any available resource ")
	default:
		c.Set(kind, metav1.ConditionTrue, workv1.ReasonResourcesAvailable, "All resources are available")
	}
}

// removed reports what blocks the removal of objects that left the ManifestWork. OCM does not have
// the condition.
func (c conditions) removed(against []string) { c.Removed("Removed", "ObjectsRemain", against) }

// deleting reports that the ManifestWork is being deleted, and what blocks that.
func (c conditions) deleting(waits string) {
	c.Set(workv1.ConditionDeleting, metav1.ConditionTrue, workv1.ReasonWorkDeleting, engine.Shorten("ManifestWork is being deleted. "+waits))
}
