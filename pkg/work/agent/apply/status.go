// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/manifest"
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

func whyUnknown(out engine.ManifestResult) string {
	words := dialect()
	return words.WhyUnknown(out)
}
