// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/work/engine/memberwatch"
)

func TestNextReconcile(t *testing.T) {
	no := &refusal.Refusal{Reason: NotWritten, Message: "no"}
	soon := func(out ManifestResult) time.Duration {
		if out.Owned {
			return time.Minute
		}
		return 0
	}
	for name, tc := range map[string]struct {
		result  Result
		again   func(ManifestResult) time.Duration
		want    time.Duration // zero: between one and two hours
		refused bool
	}{
		"nothing to do":                                {result: Result{Manifests: []ManifestResult{{}, {}}}},
		"a correction waits":                           {result: Result{Manifests: []ManifestResult{{Postponed: time.Second}, {ContestEndsIn: time.Minute}}}, want: time.Second},
		"a contest may end":                            {result: Result{Manifests: []ManifestResult{{ContestEndsIn: time.Minute}}}, want: time.Minute},
		"something is refused":                         {result: Result{Manifests: []ManifestResult{{}, {Refused: no}}}, refused: true},
		"something is refused until changed":           {result: Result{Manifests: []ManifestResult{{Refused: no, Final: true}}}},
		"a removal is forbidden":                       {result: Result{Denied: []string{"no"}}, refused: true},
		"Pods may say why":                             {result: Result{Manifests: []ManifestResult{{ReadPodsIn: time.Minute}}}, want: time.Minute},
		"the family sets the time":                     {result: Result{Manifests: []ManifestResult{{Refused: no, Owned: true}}}, again: soon, want: time.Minute},
		"the family sets the time for another outcome": {result: Result{Manifests: []ManifestResult{{Refused: no}, {Refused: no, Owned: true}}}, again: soon, want: time.Minute, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			e := &Engine{tuning: Tuning{Resync: time.Hour}, watch: memberwatch.New(nil, nil).For(schema.GroupVersionResource{Version: "v1", Resource: "records"}, nil)}
			next, refused := e.NextReconcile("work", tc.result, tc.again)
			if refused != tc.refused {
				t.Errorf("refused: %t", refused)
			}
			if late := next >= time.Hour && next < 2*time.Hour; tc.want != next && (tc.want != 0 || !late) {
				t.Errorf("the next look is in %s, want %s", next, tc.want)
			}
		})
	}
}

func TestEffort_HasDefaults(t *testing.T) {
	e := Tuning{Works: 3, Unwatched: time.Second}.WithDefaults()
	if e.Works != 3 || e.Manifests != 4 || e.Resync != 15*time.Minute || e.Unwatched != time.Second || e.Clock == nil {
		t.Errorf("got %+v", e)
	}
}
