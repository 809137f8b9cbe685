// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/apply/availability"
)

var (
	early = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	later = metav1.NewTime(early.Add(time.Hour))
)

func done(name string, state availability.State) outcome {
	return outcome{id: id(name), generation: 2, verdict: availability.Verdict{State: state, Message: "text"}}
}

func not(name, reason string) outcome {
	return outcome{id: id(name), refused: &refusal{reason, "why"}}
}

func said(conditions []metav1.Condition, name string) string {
	c := apimeta.FindStatusCondition(conditions, name)
	if c == nil {
		return ""
	}
	return string(c.Status) + "/" + c.Reason
}

func TestDesiredStatusOfTheWork(t *testing.T) {
	cases := map[string]struct {
		outcomes           []outcome
		applied, available string
	}{
		"no manifests": {nil, "True/AllManifestsApplied", "True/AllManifestsAvailable"},
		"all available": {[]outcome{done("a", availability.Available), done("b", availability.Available)},
			"True/AllManifestsApplied", "True/AllManifestsAvailable"},
		"one cannot be tracked": {[]outcome{done("a", availability.Available), done("b", availability.NotTrackable)},
			"True/AllManifestsApplied", "True/WorkNotTrackable"},
		"one is not available yet, one cannot be tracked": {[]outcome{done("a", availability.NotYet), done("b", availability.NotTrackable)},
			"True/AllManifestsApplied", "False/SomeManifestsAreNotAvailable"},
		"one cannot be judged": {[]outcome{done("a", availability.Failed)},
			"True/AllManifestsApplied", "False/SomeManifestsAreNotAvailable"},
		"one is refused": {[]outcome{done("a", availability.Available), not("b", "NotTakenOver")},
			"False/SomeManifestsAreNotApplied", ""},
		"of one nothing is known": {[]outcome{{id: id("a"), err: errors.New("no answer")}},
			"False/SomeManifestsAreNotApplied", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
			status := desiredStatus(work, tc.outcomes, early)
			if got := said(status.Conditions, "Applied"); got != tc.applied {
				t.Errorf("Applied is %q, want %q", got, tc.applied)
			}
			if got := said(status.Conditions, "Available"); got != tc.available {
				t.Errorf("Available is %q, want %q", got, tc.available)
			}
			for _, c := range status.Conditions {
				if c.ObservedGeneration != 7 || c.Message == "" {
					t.Errorf("condition %s has generation %d and message %q", c.Type, c.ObservedGeneration, c.Message)
				}
			}
			if len(status.ManifestConditions) != len(tc.outcomes) {
				t.Errorf("%d manifests are reported, want %d", len(status.ManifestConditions), len(tc.outcomes))
			}
		})
	}
}

func TestDesiredStatusOfAManifest(t *testing.T) {
	before := &placementv1beta1.Work{}
	before.Status = desiredStatus(before, []outcome{done("a", availability.Available)}, early)
	fresh := &placementv1beta1.Work{}

	cases := map[string]struct {
		work               *placementv1beta1.Work
		outcome            outcome
		applied, available string
	}{
		"available":                      {fresh, done("a", availability.Available), "True/Applied", "True/Available"},
		"not available yet":              {fresh, done("a", availability.NotYet), "True/Applied", "False/ManifestNotAvailableYet"},
		"not trackable":                  {fresh, done("a", availability.NotTrackable), "True/Applied", "True/NotTrackable"},
		"not judged":                     {fresh, done("a", availability.Failed), "True/Applied", "False/Failed"},
		"refused after it was available": {before, not("a", "ManifestApplyFailed"), "False/ManifestApplyFailed", ""},
		"not reached after it was available": {before, outcome{id: id("a"), err: errors.New("no answer")},
			"True/Applied", "True/Available"},
		"not reached at first": {fresh, outcome{id: id("a"), err: errors.New("no answer")}, "False/ManifestApplyFailed", ""},
		"postponed":            {before, outcome{id: id("a"), postponed: time.Second}, "True/Applied", "True/Available"},
		"postponed, and the status was lost": {fresh, outcome{id: id("a"), postponed: time.Second},
			"False/ManifestApplyFailed", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := desiredStatus(tc.work, []outcome{tc.outcome}, later)
			conditions := status.ManifestConditions[0].Conditions
			if got := said(conditions, "Applied"); got != tc.applied {
				t.Errorf("Applied is %q, want %q", got, tc.applied)
			}
			if got := said(conditions, "Available"); got != tc.available {
				t.Errorf("Available is %q, want %q", got, tc.available)
			}
		})
	}
}

func TestDesiredStatusIsTheSameWhenNothingChanged(t *testing.T) {
	outcomes := []outcome{done("a", availability.Available), not("b", "NotTakenOver"), {id: placementv1beta1.WorkResourceIdentifier{Ordinal: 2}, refused: &refusal{"DecodingErred", "why"}}}
	work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
	work.Status = desiredStatus(work, outcomes, early)
	if again := desiredStatus(work, outcomes, later); !apiequality.Semantic.DeepEqual(work.Status, again) {
		t.Errorf("the status changed (-before +after):\n%s", cmp.Diff(work.Status, again))
	}
}

func TestDesiredStatusFollowsAManifestToAnotherPlace(t *testing.T) {
	work := &placementv1beta1.Work{}
	work.Status = desiredStatus(work, []outcome{done("a", availability.Available)}, early)
	moved := done("a", availability.Available)
	moved.id.Ordinal = 4
	status := desiredStatus(work, []outcome{moved}, later)
	if got := status.ManifestConditions[0].Conditions[0].LastTransitionTime; !got.Equal(&early) {
		t.Errorf("the condition's time is %s, want %s", got, early)
	}
}

func TestWithoutDiffReplacesWhatWasSaidOfApplying(t *testing.T) {
	work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	work.Status = desiredStatus(work, []outcome{done("a", availability.Available)}, early)
	status := withoutDiff(work, []item{itemOf("a")}, later)
	for _, conditions := range [][]metav1.Condition{status.Conditions, status.ManifestConditions[0].Conditions} {
		if said(conditions, "Applied") != "" || said(conditions, "Available") != "" {
			t.Errorf("it still says that it is applied: %v", conditions)
		}
	}
	if got := said(status.ManifestConditions[0].Conditions, "DiffReported"); got != "False/FailedToReportDiff" {
		t.Errorf("DiffReported of the manifest is %q", got)
	}
	work.Status = status
	back := desiredStatus(work, []outcome{done("a", availability.Available)}, later)
	if got := said(back.Conditions, "DiffReported"); got != "" {
		t.Errorf("DiffReported is %q after the strategy was changed back", got)
	}
}
