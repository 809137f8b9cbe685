// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/engine/availability"
	"fleetgate.io/fleetgate/pkg/work/engine/compare"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

var (
	early = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	later = metav1.NewTime(early.Add(time.Hour))
)

func done(name string, state availability.State) engine.ManifestResult {
	return engine.ManifestResult{Ref: id(name), Generation: 2, Availability: availability.Finding{State: state, Message: "text"}}
}

func id(name string) manifest.Ref {
	return manifest.Ref{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespace: "ns", Name: name}
}

func raw(texts ...string) []placementv1beta1.Manifest {
	var list []placementv1beta1.Manifest
	for _, text := range texts {
		list = append(list, placementv1beta1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(text)}})
	}
	return list
}

func not(name string, reason string) engine.ManifestResult {
	return engine.ManifestResult{Ref: id(name), Refused: &refusal.Refusal{Reason: reason, Message: "why"}}
}

func said(conditions []metav1.Condition, name string) string {
	c := apimeta.FindStatusCondition(conditions, name)
	if c == nil {
		return ""
	}
	return string(c.Status) + "/" + c.Reason
}

func TestDesiredStatus_OfTheWork(t *testing.T) {
	cases := map[string]struct {
		results            []engine.ManifestResult
		applied, available string
	}{
		"no manifests": {nil, "True/AllManifestsApplied", "True/AllManifestsAvailable"},
		"all available": {[]engine.ManifestResult{done("a", availability.Available), done("b", availability.Available)},
			"True/AllManifestsApplied", "True/AllManifestsAvailable"},
		"a Job is complete": {[]engine.ManifestResult{done("a", availability.Available), done("b", availability.Completed)},
			"True/AllManifestsApplied", "True/WorkNotTrackable"},
		"a Job has failed": {[]engine.ManifestResult{done("a", availability.Available), done("b", availability.Failed)},
			"True/AllManifestsApplied", "False/SomeManifestsAreNotAvailable"},
		"one cannot be tracked": {[]engine.ManifestResult{done("a", availability.Available), done("b", availability.NotTrackable)},
			"True/AllManifestsApplied", "True/WorkNotTrackable"},
		"one is not available yet, one cannot be tracked": {[]engine.ManifestResult{done("a", availability.NotYet), done("b", availability.NotTrackable)},
			"True/AllManifestsApplied", "False/SomeManifestsAreNotAvailable"},
		"one cannot be judged": {[]engine.ManifestResult{done("a", availability.Failed)},
			"True/AllManifestsApplied", "False/SomeManifestsAreNotAvailable"},
		"one is refused": {[]engine.ManifestResult{done("a", availability.Available), not("b", engine.NotTakenOver)},
			"False/SomeManifestsAreNotApplied", ""},
		"one is unknown": {[]engine.ManifestResult{{Ref: id("a"), Err: errors.New("no answer")}},
			"False/SomeManifestsAreNotApplied", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
			status := desiredStatus(work, tc.results, early)
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
			if len(status.ManifestConditions) != len(tc.results) {
				t.Errorf("%d manifests are reported, want %d", len(status.ManifestConditions), len(tc.results))
			}
		})
	}
}

func TestDesiredStatus_OfAManifest(t *testing.T) {
	before := &placementv1beta1.Work{}
	before.Status = desiredStatus(before, []engine.ManifestResult{done("a", availability.Available)}, early)
	fresh := &placementv1beta1.Work{}

	cases := map[string]struct {
		work               *placementv1beta1.Work
		result             engine.ManifestResult
		applied, available string
	}{
		"available":                      {fresh, done("a", availability.Available), "True/Applied", "True/Available"},
		"not available yet":              {fresh, done("a", availability.NotYet), "True/Applied", "False/ManifestNotAvailableYet"},
		"complete":                       {fresh, done("a", availability.Completed), "True/Applied", "True/Completed"},
		"failed":                         {fresh, done("a", availability.Failed), "True/Applied", "False/Failed"},
		"gone before it was seen to end": {fresh, done("a", availability.CompletionUnknown), "True/Applied", "False/CompletionUnknown"},
		"not trackable":                  {fresh, done("a", availability.NotTrackable), "True/Applied", "True/NotTrackable"},
		"not judged":                     {fresh, done("a", availability.Failed), "True/Applied", "False/Failed"},
		"refused after it was available": {before, not("a", engine.NotWritten), "False/ManifestApplyFailed", ""},
		"not reached after it was available": {before, engine.ManifestResult{Ref: id("a"), Err: errors.New("no answer")},
			"True/Applied", "True/Available"},
		"not reached at first": {fresh, engine.ManifestResult{Ref: id("a"), Err: errors.New("no answer")}, "False/ManifestApplyFailed", ""},
		"postponed":            {before, engine.ManifestResult{Ref: id("a"), Postponed: time.Second}, "True/Applied", "True/Available"},
		"postponed, and the status was lost": {fresh, engine.ManifestResult{Ref: id("a"), Postponed: time.Second},
			"False/ManifestApplyFailed", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := desiredStatus(tc.work, []engine.ManifestResult{tc.result}, later)
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

func TestDesiredStatus_IsStableWithoutChanges(t *testing.T) {
	results := []engine.ManifestResult{done("a", availability.Available), not("b", engine.NotTakenOver), {Ref: manifest.Ref{Ordinal: 2}, Refused: &refusal.Refusal{Reason: engine.Undecodable, Message: "why"}}}
	work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
	work.Status = desiredStatus(work, results, early)
	if again := desiredStatus(work, results, later); !sameStatus(&work.Status, &again) {
		t.Errorf("the status changed (-before +after):\n%s", cmp.Diff(work.Status, again))
	}
}

func TestDesiredStatus_KeepsConditionsWhenTheOrdinalChanges(t *testing.T) {
	work := &placementv1beta1.Work{}
	work.Status = desiredStatus(work, []engine.ManifestResult{done("a", availability.Available)}, early)
	moved := done("a", availability.Available)
	moved.Ref.Ordinal = 4
	status := desiredStatus(work, []engine.ManifestResult{moved}, later)
	if got := status.ManifestConditions[0].Conditions[0].LastTransitionTime; !got.Equal(&early) {
		t.Errorf("the condition's time is %s, want %s", got, early)
	}
}

func comparedTo(name string, found engine.Differences) engine.ManifestResult {
	return engine.ManifestResult{Ref: id(name), Final: true, UID: "1", Generation: 2, Diff: found}
}

func fieldsAt(paths ...string) engine.Differences {
	var found engine.Differences
	for _, path := range paths {
		found.Fields = append(found.Fields, compare.Detail{Path: path, ValueInHub: "1", ValueInMember: "2"})
	}
	return found
}

func TestDesiredStatus_OfAComparison(t *testing.T) {
	reporting := &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ReportDiff}
	degraded := fieldsAt("/data/a")
	degraded.Degraded = true
	cases := map[string]struct {
		result         engine.ManifestResult
		work, manifest string
	}{
		"the same":            {comparedTo("a", engine.Differences{}), "True/AllManifestsDiffReported", "True/NoDiffFound"},
		"a difference":        {comparedTo("a", fieldsAt("/data/a")), "True/AllManifestsDiffReported", "True/FoundDiff"},
		"all fields compared": {comparedTo("a", degraded), "True/AllManifestsDiffReported", "True/FoundDiffInDegradedMode"},
		"unreadable":          {not("a", engine.Undecodable), "False/SomeManifestsHaveNotReportedDiff", "False/DecodingErred"},
		"of an unknown kind":  {not("a", engine.Unserved), "False/SomeManifestsHaveNotReportedDiff", "False/DecodingErred"},
		"not reached":         {engine.ManifestResult{Ref: id("a"), Err: errors.New("no answer")}, "False/SomeManifestsHaveNotReportedDiff", "False/FailedToReportDiff"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
			work.Status = desiredStatus(work, []engine.ManifestResult{done("a", availability.Available)}, early)
			work.Spec.ApplyStrategy = reporting
			status := desiredStatus(work, []engine.ManifestResult{tc.result}, later)
			for _, conditions := range [][]metav1.Condition{status.Conditions, status.ManifestConditions[0].Conditions} {
				if said(conditions, "Applied") != "" || said(conditions, "Available") != "" {
					t.Errorf("condition Applied remains: %v", conditions)
				}
			}
			if got := said(status.Conditions, "DiffReported"); got != tc.work {
				t.Errorf("DiffReported of the Work is %q, want %q", got, tc.work)
			}
			if got := said(status.ManifestConditions[0].Conditions, "DiffReported"); got != tc.manifest {
				t.Errorf("DiffReported of the manifest is %q, want %q", got, tc.manifest)
			}
			work.Status, work.Spec.ApplyStrategy = status, nil
			back := desiredStatus(work, []engine.ManifestResult{done("a", availability.Available)}, later)
			if got := said(back.Conditions, "DiffReported") + said(back.ManifestConditions[0].Conditions, "DiffReported"); got != "" {
				t.Errorf("DiffReported is %q after the strategy was changed back", got)
			}
			if back.ManifestConditions[0].DiffDetails != nil {
				t.Error("differences are reported after the strategy was changed back")
			}
		})
	}
}

func TestDesiredStatus_KeepsTheTimeOfTheFirstDrift(t *testing.T) {
	drifted := func(found engine.Differences) engine.ManifestResult {
		out := not("a", engine.Drifted)
		out.Drift, out.Generation, out.UID = found, 2, "1"
		return out
	}
	work := &placementv1beta1.Work{}
	work.Status = desiredStatus(work, []engine.ManifestResult{drifted(fieldsAt("/data/a"))}, early)

	if same := desiredStatus(work, []engine.ManifestResult{drifted(fieldsAt("/data/a"))}, later); !sameStatus(&work.Status, &same) {
		t.Errorf("the same drift is written again (-before +after):\n%s", cmp.Diff(work.Status, same))
	}
	more := desiredStatus(work, []engine.ManifestResult{drifted(fieldsAt("/data/a", "/data/b"))}, later)
	want := &placementv1beta1.DriftDetails{
		ObservationTime: later, ObservedInMemberClusterGeneration: 2, FirstDriftedObservedTime: early,
		ObservedDrifts: fieldsOf(fieldsAt("/data/a", "/data/b")),
	}
	if diff := cmp.Diff(want, more.ManifestConditions[0].DriftDetails); diff != "" {
		t.Errorf("drift (-want +got):\n%s", diff)
	}
	unreached := desiredStatus(work, []engine.ManifestResult{{Ref: id("a"), Err: errors.New("no answer")}}, later)
	if diff := cmp.Diff(work.Status.ManifestConditions, unreached.ManifestConditions); diff != "" {
		t.Errorf("an unreachable member changes the status (-before +after):\n%s", diff)
	}
	if over := desiredStatus(work, []engine.ManifestResult{done("a", availability.Available)}, later); over.ManifestConditions[0].DriftDetails != nil {
		t.Error("drift is reported after it was reverted")
	}
}

func TestDesiredStatus_OfAMissingObject(t *testing.T) {
	work := &placementv1beta1.Work{Spec: placementv1beta1.WorkSpec{ApplyStrategy: &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ReportDiff}}}
	missing := comparedTo("a", engine.Differences{Fields: compare.Missing()})
	missing.UID, missing.Generation = "", 0
	got := desiredStatus(work, []engine.ManifestResult{missing}, early).ManifestConditions[0].DiffDetails
	want := &placementv1beta1.DiffDetails{ObservationTime: early, FirstDiffedObservedTime: early,
		ObservedDiffs: []placementv1beta1.PatchDetail{{Path: "/", ValueInHub: "(the whole object)"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("difference (-want +got):\n%s", diff)
	}
}

func TestDesiredStatus_ReportsAContestWhileItLasts(t *testing.T) {
	work := &placementv1beta1.Work{}
	out := done("a", availability.Available)
	out.Contest = &engine.Contest{Manager: "other", Fields: []string{"/data/a"}}
	work.Status = desiredStatus(work, []engine.ManifestResult{done("b", availability.Available), out}, early)
	for _, conditions := range [][]metav1.Condition{work.Status.Conditions, work.Status.ManifestConditions[1].Conditions} {
		c := apimeta.FindStatusCondition(conditions, placementv1beta1.ConditionContested)
		if c == nil || c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, `"other"`) || !strings.Contains(c.Message, "/data/a") {
			t.Errorf("Contested is %+v", c)
		}
	}
	waiting := out
	waiting.Postponed = time.Minute
	if same := desiredStatus(work, []engine.ManifestResult{done("b", availability.Available), waiting}, later); !sameStatus(&work.Status, &same) {
		t.Errorf("a correction that waits changes the status (-before +after):\n%s", cmp.Diff(work.Status, same))
	}
	over := desiredStatus(work, []engine.ManifestResult{done("b", availability.Available), done("a", availability.Available)}, later)
	if said(over.Conditions, "Contested")+said(over.ManifestConditions[1].Conditions, "Contested") != "" {
		t.Error("condition Contested remains after the contest")
	}
}

func TestDesiredStatus_IsTrimmedWhenTheWorkIsTooLarge(t *testing.T) {
	work := &placementv1beta1.Work{}
	work.Spec.Workload.Manifests = raw(strings.Repeat("x", maxWork-2000))
	out := not("a", engine.Drifted)
	out.Drift, out.Generation, out.UID = fieldsAt("/data/"+strings.Repeat("a", 2000)), 2, "1"
	work.Status = desiredStatus(work, []engine.ManifestResult{out}, early)
	if got := said(work.Status.Conditions, "StatusTrimmed"); got != "True/StatusOversized" {
		t.Errorf("StatusTrimmed is %q", got)
	}
	if drift := work.Status.ManifestConditions[0].DriftDetails; drift == nil || drift.ObservedDrifts != nil {
		t.Errorf("the drift is %+v", drift)
	}
	if same := desiredStatus(work, []engine.ManifestResult{out}, later); !sameStatus(&work.Status, &same) {
		t.Errorf("it is written again (-before +after):\n%s", cmp.Diff(work.Status, same))
	}
	work.Spec.Workload.Manifests = nil
	full := desiredStatus(work, []engine.ManifestResult{out}, later)
	if said(full.Conditions, "StatusTrimmed") != "" || len(full.ManifestConditions[0].DriftDetails.ObservedDrifts) != 1 {
		t.Error("it stays trimmed")
	}
}

func TestDesiredStatus_ReportsTheStatusOfAnObject(t *testing.T) {
	work := &placementv1beta1.Work{}
	out := done("a", availability.Available)
	out.Mirrored = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{"name": "a"}, "status": map[string]any{"phase": "x"}}}
	work.Status = desiredStatus(work, []engine.ManifestResult{out}, early)
	const want = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"status":{"phase":"x"}}`
	report := &work.Status.ManifestConditions[0].BackReportedStatus.ObservedStatus
	if diff := cmp.Diff(want, string(report.Raw)); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	report.Raw = []byte(`{"status":{"phase":"x"},"kind":"Service","metadata":{"name":"a"},"apiVersion":"v1"}`)
	if same := desiredStatus(work, []engine.ManifestResult{out}, later); !sameStatus(&work.Status, &same) {
		t.Errorf("another order of keys is another status (-before +after):\n%s", cmp.Diff(work.Status, same))
	}
}

func TestSameStatus_DetectsEveryDifference(t *testing.T) {
	out := done("a", availability.Available)
	out.Drift, out.Diff = fieldsAt("/data/a"), fieldsAt("/data/b")
	out.Mirrored = &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"x": "1"}}}
	one := desiredStatus(&placementv1beta1.Work{}, []engine.ManifestResult{out}, early)
	for name, change := range map[string]func(*placementv1beta1.WorkStatus){
		"":                          func(*placementv1beta1.WorkStatus) {},
		"a condition less":          func(s *placementv1beta1.WorkStatus) { s.Conditions = s.Conditions[1:] },
		"another reason":            func(s *placementv1beta1.WorkStatus) { s.Conditions[0].Reason = "Other" },
		"another generation":        func(s *placementv1beta1.WorkStatus) { s.Conditions[0].ObservedGeneration = 7 },
		"another time":              func(s *placementv1beta1.WorkStatus) { s.Conditions[0].LastTransitionTime = later },
		"a manifest less":           func(s *placementv1beta1.WorkStatus) { s.ManifestConditions = nil },
		"another object":            func(s *placementv1beta1.WorkStatus) { s.ManifestConditions[0].Identifier.Name = "b" },
		"another manifest's reason": func(s *placementv1beta1.WorkStatus) { s.ManifestConditions[0].Conditions[0].Message = "other" },
		"no drift any more":         func(s *placementv1beta1.WorkStatus) { s.ManifestConditions[0].DriftDetails = nil },
		"another drift": func(s *placementv1beta1.WorkStatus) {
			s.ManifestConditions[0].DriftDetails.ObservedDrifts[0].ValueInHub = "other"
		},
		"another difference": func(s *placementv1beta1.WorkStatus) { s.ManifestConditions[0].DiffDetails.ObservationTime = later },
		"another status of the object": func(s *placementv1beta1.WorkStatus) {
			s.ManifestConditions[0].BackReportedStatus.ObservedStatus.Raw = []byte("{}")
		},
	} {
		other := one.DeepCopy()
		change(other)
		if same := sameStatus(&one, other); same != (name == "") {
			t.Errorf("%q: they are the same: %t", name, same)
		}
	}
}

func TestDesiredStatus_CutsMessagesWhenTheyAreTooLongTogether(t *testing.T) {
	work := &placementv1beta1.Work{}
	work.Spec.Workload.Manifests = raw(strings.Repeat("x", maxWork-2000))
	first, second := not("a", engine.NotWritten), not("b", engine.NotWritten)
	first.Refused.Message, second.Refused.Message = strings.Repeat("a", 1000), strings.Repeat("b", 1000)
	work.Status = desiredStatus(work, []engine.ManifestResult{first, second}, early)
	if got := said(work.Status.Conditions, "StatusTrimmed"); got != "True/StatusOversized" {
		t.Errorf("StatusTrimmed is %q", got)
	}
	for _, m := range work.Status.ManifestConditions {
		if got := len(m.Conditions[0].Message); got > trimmedMessage+4 {
			t.Errorf("a message has %d bytes", got)
		}
	}
	if same := desiredStatus(work, []engine.ManifestResult{first, second}, later); !sameStatus(&work.Status, &same) {
		t.Errorf("it is written again (-before +after):\n%s", cmp.Diff(work.Status, same))
	}
	if c := apimeta.FindStatusCondition(work.Status.Conditions, placementv1beta1.ConditionApplied); !strings.Contains(c.Message, strings.Repeat("a", 1000)) {
		t.Errorf("the Work says %q", c.Message)
	}
}
