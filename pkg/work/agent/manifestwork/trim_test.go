// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"strings"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/work/engine"
)

func TestTrimmed_DropsFeedbackValuesOfALargeStatus(t *testing.T) {
	results := func(bytes int) []engine.ManifestResult {
		value := workv1.FeedbackValue{Name: "x", Value: workv1.FieldValue{Type: workv1.ValueString, String: ptr.To(strings.Repeat("x", bytes))}}
		return []engine.ManifestResult{{Ref: refTo("a"), UID: "1", Examined: &examined{hasRules: true, values: []workv1.FeedbackValue{value}}}}
	}
	work := &workv1.ManifestWork{}
	work.Status = desiredStatus(work, results(2<<20), early)
	if !apimeta.IsStatusConditionTrue(work.Status.Conditions, conditionTrimmed) || len(work.Status.ResourceStatus.Manifests[0].StatusFeedback.Values) != 0 {
		t.Errorf("a value of 2 MiB is reported: %q", lines(work.Status.Conditions))
	}
	again := desiredStatus(work, results(2<<20), later)
	if times := again.ResourceStatus.Manifests[0].Conditions[2].LastTransitionTime; !times.Equal(&early) {
		t.Error("a value that is left out again counts as changed")
	}
	work.Status = desiredStatus(work, results(10), later)
	if apimeta.FindStatusCondition(work.Status.Conditions, conditionTrimmed) != nil || len(work.Status.ResourceStatus.Manifests[0].StatusFeedback.Values) != 1 {
		t.Errorf("a small value is not reported: %q", lines(work.Status.Conditions))
	}
}
