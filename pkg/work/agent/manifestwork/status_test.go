// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

var (
	early = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	later = metav1.NewTime(early.Add(time.Hour))
)

func refTo(name string) manifest.Ref {
	return manifest.Ref{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespace: "default", Name: name}
}

// lines formats conditions as type status reason generation: message.
func lines(conditions []metav1.Condition) []string {
	var all []string
	for _, c := range conditions {
		all = append(all, fmt.Sprintf("%s %s %s %d: %s", c.Type, c.Status, c.Reason, c.ObservedGeneration, c.Message))
	}
	return all
}

func TestManifestStatus_HasTheReasonsOfOCM(t *testing.T) {
	const noFeedback = "StatusFeedbackSynced True NoStatusFeedbackSynced 0: "
	there := &examined{}
	for name, tc := range map[string]struct {
		out  engine.ManifestResult
		want []string
	}{
		"brought": {
			engine.ManifestResult{Ref: refTo("a"), UID: "1", Examined: there},
			[]string{"Applied True AppliedManifestComplete 3: Apply manifest complete", "Available True ResourceAvailable 0: Resource is available", noFeedback}},
		"only read, missing": {
			engine.ManifestResult{Ref: refTo("a"), Final: true},
			[]string{"Applied True AppliedManifestComplete 3: Apply manifest complete", "Available False ResourceNotAvailable 0: Resource is not available"}},
		"refused, missing": {
			engine.ManifestResult{Ref: refTo("a"), Refused: &refusal.Refusal{Reason: engine.NotWritten, Message: "no"}},
			[]string{"Applied False AppliedManifestFailed 3: Failed to apply manifest: no", "Available False ResourceNotAvailable 0: Resource is not available"}},
		"refused, existing": {
			engine.ManifestResult{Ref: refTo("a"), UID: "1", Examined: there, Refused: &refusal.Refusal{Reason: engine.NotWritten, Message: "conflict"}},
			[]string{"Applied False AppliedManifestFailed 3: Failed to apply manifest: conflict", "Available True ResourceAvailable 0: Resource is available", noFeedback}},
		"unreadable": {
			engine.ManifestResult{Refused: &refusal.Refusal{Reason: engine.Undecodable, Message: "bad"}},
			[]string{"Applied False AppliedManifestFailed 3: Failed to apply manifest: bad", "Available Unknown IncompleteResourceMeta 0: Resource meta is incomplete"}},
		"of an unknown kind": {
			engine.ManifestResult{Ref: manifest.Ref{Group: "e.io", Version: "v1", Kind: "K", Name: "a"}, Refused: &refusal.Refusal{Reason: engine.NotAcceptable, Message: "no kind"}},
			[]string{"Applied False AppliedManifestFailed 3: Failed to apply manifest: no kind", "Available Unknown IncompleteResourceMeta 0: Resource meta is incomplete"}},
		"not found out": {
			engine.ManifestResult{Ref: refTo("a"), Err: errors.New("no route")},
			[]string{"Applied False AppliedManifestFailed 3: Failed to apply manifest: The member was not reached: no route",
				"Available Unknown FetchingResourceFailed 0: Failed to fetch resource: The member was not reached: no route"}},
		"not to be seen": {
			engine.ManifestResult{Ref: refTo("a"), Refused: &refusal.Refusal{Reason: engine.NotFound, Message: "cannot get"}},
			[]string{"Applied False AppliedManifestFailed 3: Failed to apply manifest: cannot get",
				"Available Unknown FetchingResourceFailed 0: Failed to fetch resource: cannot get"}},
		"with fields to ignore that cannot be found": {
			engine.ManifestResult{Ref: refTo("a"), UID: "1", Examined: there, Refused: &refusal.Refusal{Reason: ignoreFields, Message: "jq"}},
			[]string{"Applied False AppliedManifestSSAIgnoreFieldError 3: Failed to process ignoreFields: jq", "Available True ResourceAvailable 0: Resource is available", noFeedback}},
		"with feedback": {
			engine.ManifestResult{Ref: refTo("a"), UID: "1", Examined: &examined{hasRules: true, values: []workv1.FeedbackValue{{Name: "x"}}}},
			[]string{"Applied True AppliedManifestComplete 3: Apply manifest complete", "Available True ResourceAvailable 0: Resource is available",
				"StatusFeedbackSynced True StatusFeedbackSynced 0: "}},
		"with feedback that failed": {
			engine.ManifestResult{Ref: refTo("a"), UID: "1", Examined: &examined{hasRules: true, failure: errors.New("no path")}},
			[]string{"Applied True AppliedManifestComplete 3: Apply manifest complete", "Available True ResourceAvailable 0: Resource is available",
				"StatusFeedbackSynced False StatusFeedbackSyncFailed 0: Sync status feedback failed with error no path"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := manifestStatus(workv1.ManifestCondition{}, tc.out, shared{generation: 3, now: early})
			if diff := cmp.Diff(tc.want, lines(got.Conditions)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDesiredStatus_HasTheReasonsOfOCM(t *testing.T) {
	brought := engine.ManifestResult{Ref: refTo("a"), UID: "1"}
	missing := engine.ManifestResult{Ref: refTo("b"), Refused: &refusal.Refusal{Reason: engine.NotWritten, Message: "no"}}
	unreadable := engine.ManifestResult{Ref: manifest.Ref{Ordinal: 2}, Refused: &refusal.Refusal{Reason: engine.Undecodable, Message: "bad"}}
	read := engine.ManifestResult{Ref: refTo("c")}
	const complete, failed = "Applied True AppliedManifestWorkComplete 5: Apply manifest work complete", "Applied False AppliedManifestWorkFailed 5: Failed to apply manifest work"
	for name, tc := range map[string]struct {
		results []engine.ManifestResult
		want    []string
	}{
		"all exist":            {[]engine.ManifestResult{brought, brought}, []string{complete, "Available True ResourcesAvailable 5: All resources are available"}},
		"one is missing":       {[]engine.ManifestResult{brought, missing}, []string{failed, "Available False ResourcesNotAvailable 5: 1 of 2 resources are not available"}},
		"one is unreadable":    {[]engine.ManifestResult{brought, unreadable}, []string{failed, "Available Unknown ResourcesStatusUnknown 5: 1 of 2 resources have unknown status"}},
		"both":                 {[]engine.ManifestResult{missing, unreadable}, []string{failed, "Available False ResourcesNotAvailable 5: 1 of 2 resources are not available"}},
		"one is only read":     {[]engine.ManifestResult{brought, read}, []string{complete, "Available False ResourcesNotAvailable 5: 1 of 2 resources are not available"}},
		"there is no manifest": {nil, []string{complete, "Available Unknown ResourcesStatusUnknown 5: cannot get any available resource "}},
	} {
		t.Run(name, func(t *testing.T) {
			work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Generation: 5}}
			if diff := cmp.Diff(tc.want, lines(desiredStatus(work, tc.results, early).Conditions)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDesiredStatus_KeepsTimesOfUnchangedParts(t *testing.T) {
	value := func(n int64) *examined {
		return &examined{hasRules: true, values: []workv1.FeedbackValue{{Name: "n", Value: workv1.FieldValue{Type: workv1.ValueInteger, Integer: ptr.To(n)}}}}
	}
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
	results := []engine.ManifestResult{{Ref: refTo("a"), UID: "1", Examined: value(1)}}
	work.Status = desiredStatus(work, results, early)

	if diff := cmp.Diff(work.Status, desiredStatus(work, results, later)); diff != "" {
		t.Errorf("nothing has happened, but (-before +after):\n%s", diff)
	}
	results[0].Examined = value(2)
	after := desiredStatus(work, results, later).ResourceStatus.Manifests[0]
	var times []bool
	for _, c := range after.Conditions {
		times = append(times, c.LastTransitionTime.Equal(&later))
	}
	if diff := cmp.Diff([]bool{false, false, true}, times); diff != "" {
		t.Errorf("conditions that have the time of a value's change (-want +got):\n%s", diff)
	}
	if got := merged(after.StatusFeedback.Values); len(got) != 1 || got[0] != "n Integer 2" {
		t.Errorf("the values are %v", got)
	}
}

func TestManifestStatus_KeepsValuesWhileTheObjectIsUnreadable(t *testing.T) {
	work := &workv1.ManifestWork{}
	found := &examined{hasRules: true, values: []workv1.FeedbackValue{{Name: "n", Value: workv1.FieldValue{Type: workv1.ValueString, String: ptr.To("x")}}}}
	work.Status = desiredStatus(work, []engine.ManifestResult{{Ref: refTo("a"), UID: "1", Examined: found}}, early)
	away := desiredStatus(work, []engine.ManifestResult{{Ref: refTo("a"), Err: errors.New("no route")}}, later).ResourceStatus.Manifests[0]
	want := []string{"Applied True AppliedManifestComplete 0: Apply manifest complete",
		"Available Unknown FetchingResourceFailed 0: Failed to fetch resource: The member was not reached: no route",
		"StatusFeedbackSynced True StatusFeedbackSynced 0: "}
	if diff := cmp.Diff(want, lines(away.Conditions)); diff != "" || len(away.StatusFeedback.Values) != 1 {
		t.Errorf("%d values; conditions (-want +got):\n%s", len(away.StatusFeedback.Values), diff)
	}
}

func TestDesiredStatus_ReportsAContestWhileItLasts(t *testing.T) {
	out := engine.ManifestResult{Ref: refTo("a"), UID: "1", Postponed: time.Second, Contest: &engine.Contest{Manager: "other", Fields: []string{"/data/a"}}}
	first := manifestStatus(workv1.ManifestCondition{}, engine.ManifestResult{Ref: refTo("a"), UID: "1"}, shared{generation: 1, now: early})
	contested := manifestStatus(first, out, shared{generation: 1, now: later})
	if got := lines(contested.Conditions); len(got) != 3 || got[0] != "Applied True AppliedManifestComplete 1: Apply manifest complete" {
		t.Errorf("while it lasts: %q", got)
	}
	out.Contest, out.Postponed = nil, 0
	if got := lines(manifestStatus(contested, out, shared{generation: 1, now: later}).Conditions); len(got) != 2 {
		t.Errorf("afterwards: %q", got)
	}
}

func TestReported_FindsAManifestAtAnotherOrdinal(t *testing.T) {
	before := []workv1.ManifestCondition{{ResourceMeta: metaOf(refTo("a")), Conditions: []metav1.Condition{{Type: "x"}}}}
	moved := refTo("a")
	moved.Ordinal, moved.Version = 4, "v2"
	if got := reported(before, moved); len(got.Conditions) != 1 {
		t.Errorf("it was not found: %+v", got)
	}
	if got := reported(before, refTo("b")); len(got.Conditions) != 0 {
		t.Errorf("another was found: %+v", got)
	}
	if got := reported([]workv1.ManifestCondition{{}}, manifest.Ref{Ordinal: 1}); len(got.Conditions) != 0 {
		t.Errorf("an unreadable one was found elsewhere: %+v", got)
	}
}
