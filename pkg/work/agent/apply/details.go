// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/engine"
)

// driftDetails reports how the object of an applied manifest differs. Times change only with the
// details, so that a reconcile without news writes nothing.
func driftDetails(before *placementv1beta1.DriftDetails, out engine.ManifestResult, now metav1.Time) *placementv1beta1.DriftDetails {
	if len(out.Drift.Fields) == 0 {
		return nil
	}
	details := &placementv1beta1.DriftDetails{
		ObservationTime:                   now,
		ObservedInMemberClusterGeneration: out.Generation,
		FirstDriftedObservedTime:          now,
		ObservedDrifts:                    fieldsOf(out.Drift),
	}
	if before == nil {
		return details
	}
	details.FirstDriftedObservedTime = before.FirstDriftedObservedTime
	if before.ObservedInMemberClusterGeneration == out.Generation && sameFields(before.ObservedDrifts, fieldsOf(out.Drift)) {
		details.ObservationTime = before.ObservationTime
	}
	return details
}

// diffDetails is the same for the object of a manifest that is not applied.
func diffDetails(before *placementv1beta1.DiffDetails, out engine.ManifestResult, now metav1.Time) *placementv1beta1.DiffDetails {
	if len(out.Diff.Fields) == 0 {
		return nil
	}
	details := &placementv1beta1.DiffDetails{
		ObservationTime:         now,
		FirstDiffedObservedTime: now,
		ObservedDiffs:           fieldsOf(out.Diff),
	}
	if out.UID != "" {
		details.ObservedInMemberClusterGeneration = ptr.To(out.Generation)
	}
	if before == nil {
		return details
	}
	details.FirstDiffedObservedTime = before.FirstDiffedObservedTime
	if ptr.Equal(before.ObservedInMemberClusterGeneration, details.ObservedInMemberClusterGeneration) &&
		sameFields(before.ObservedDiffs, fieldsOf(out.Diff)) {
		details.ObservationTime = before.ObservationTime
	}
	return details
}

// fieldsOf converts differences to the API type.
func fieldsOf(found engine.Differences) []placementv1beta1.PatchDetail {
	fields := make([]placementv1beta1.PatchDetail, 0, len(found.Fields))
	for _, field := range found.Fields {
		fields = append(fields, placementv1beta1.PatchDetail(field))
	}
	return fields
}

// sameFields compares with reported fields, which are empty if the status was trimmed.
func sameFields(before, now []placementv1beta1.PatchDetail) bool {
	return len(before) == 0 || slices.Equal(before, now)
}

// backReported returns the status of the object, if requested.
func backReported(before *placementv1beta1.BackReportedStatus, out engine.ManifestResult, now metav1.Time) *placementv1beta1.BackReportedStatus {
	if out.Mirrored == nil {
		return nil
	}
	text, err := json.Marshal(out.Mirrored.Object)
	if err != nil {
		return nil // cannot fail: it was decoded from JSON
	}
	report := &placementv1beta1.BackReportedStatus{
		ObservedStatus:  placementv1beta1.Manifest{RawExtension: runtime.RawExtension{Raw: text}},
		ObservationTime: now,
	}
	if before != nil && sameJSON(before.ObservedStatus.Raw, text) {
		return before
	}
	return report
}

// sameJSON compares JSON that the hub stored, possibly with another order of keys, with sorted
// JSON.
func sameJSON(stored, sorted []byte) bool {
	var value any
	if json.Unmarshal(stored, &value) != nil {
		return false
	}
	text, err := json.Marshal(value)
	return err == nil && string(text) == string(sorted)
}
