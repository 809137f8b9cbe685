// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// maker builds a binding.
type maker struct {
	*placementv1beta1.ClusterResourceBinding
}

func binding(name string, state placementv1beta1.BindingState, snapshot string) maker {
	b := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 3}}
	b.Spec.State, b.Spec.ResourceSnapshotName = state, snapshot
	return maker{b}
}

func (m maker) with(kind string, status metav1.ConditionStatus, reason string, age time.Duration) maker {
	m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, ObservedGeneration: m.Generation, LastTransitionTime: metav1.NewTime(now.Add(-age)),
	})
	return m
}

func (m maker) ready() maker {
	return m.with(placementv1beta1.ConditionAvailable, metav1.ConditionTrue, placementv1beta1.ReasonAllWorkAreAvailable, 0)
}

func (m maker) untracked(age time.Duration) maker {
	return m.with(placementv1beta1.ConditionAvailable, metav1.ConditionTrue, placementv1beta1.ReasonNotAllWorkAreAvailabilityTrackable, age)
}

func (m maker) failed() maker {
	return m.with(placementv1beta1.ConditionApplied, metav1.ConditionFalse, placementv1beta1.ReasonNotAllWorkHaveBeenApplied, 0)
}

// undispatched still has the previous version, because an override does not fit.
func (m maker) undispatched() maker {
	m = m.ready()
	m.Generation++
	return m.with(placementv1beta1.ConditionOverridden, metav1.ConditionFalse, placementv1beta1.ReasonOverriddenFailed, 0)
}

func (m maker) going() maker {
	t := metav1.NewTime(now)
	m.DeletionTimestamp = &t
	return m
}

func several(n int, state placementv1beta1.BindingState, snapshot string, shape func(maker) maker) []maker {
	var all []maker
	for i := range n {
		all = append(all, shape(binding(fmt.Sprintf("%s-%d", state, i), state, snapshot)))
	}
	return all
}

func join(lists ...[]maker) []maker {
	var all []maker
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

const (
	scheduled   = placementv1beta1.BindingScheduled
	bound       = placementv1beta1.BindingBound
	unscheduled = placementv1beta1.BindingUnscheduled
)

func plain(m maker) maker { return m }

func TestPlan(t *testing.T) {
	type counts struct{ Update, Remove, Blocked, Settled int }
	cases := map[string]struct {
		reason   string
		bindings []maker
		pace     Pace
		want     counts
		again    time.Duration
	}{
		"first rollout binds all at once": {
			reason:   "nothing is available yet that could become unavailable",
			bindings: several(4, scheduled, "", plain),
			pace:     Pace{Target: 4, MaxUnavailable: 1, MaxSurge: 1},
			want:     counts{Update: 4},
		},
		"update moves maxUnavailable members": {
			bindings: several(4, bound, "old", maker.ready),
			pace:     Pace{Target: 4, MaxUnavailable: 2},
			want:     counts{Update: 2, Blocked: 2},
		},
		"update in flight counts": {
			reason:   "what is bound to the latest and not ready is unavailable already",
			bindings: join(several(1, bound, "new", plain), several(3, bound, "old", maker.ready)),
			pace:     Pace{Target: 4, MaxUnavailable: 1},
			want:     counts{Blocked: 3, Settled: 1},
		},
		"failed members are always updated": {
			reason:   "a fix must reach the members that the mistake broke",
			bindings: join(several(2, bound, "old", maker.failed), several(2, scheduled, "", plain)),
			pace:     Pace{Target: 4, MaxUnavailable: 0},
			want:     counts{Update: 4},
		},
		"members on the previous version are moved within the budget": {
			reason:   "a mistake in an override reached nobody, and its remedy may be a worse one",
			bindings: several(4, bound, "old", maker.undispatched),
			pace:     Pace{Target: 4, MaxUnavailable: 1},
			want:     counts{Update: 1, Blocked: 3},
		},
		"member on the previous version is no reserve for others": {
			bindings: join(several(3, bound, "old", maker.ready), several(1, bound, "new", maker.undispatched)),
			pace:     Pace{Target: 4, MaxUnavailable: 1},
			want:     counts{Blocked: 3, Settled: 1},
		},
		"undispatched member goes first": {
			bindings: join(several(3, bound, "old", maker.ready), several(1, bound, "old", maker.undispatched)),
			pace:     Pace{Target: 4, MaxUnavailable: 1},
			want:     counts{Update: 1, Blocked: 3},
		},
		"members on the previous version wait while another one is unavailable": {
			bindings: join(several(1, bound, "new", plain), several(3, bound, "old", maker.undispatched)),
			pace:     Pace{Target: 4, MaxUnavailable: 1},
			want:     counts{Blocked: 3, Settled: 1},
		},
		"budget is spent once": {
			bindings: join(several(2, bound, "old", maker.ready), several(2, bound, "old", maker.undispatched)),
			pace:     Pace{Target: 4, MaxUnavailable: 3},
			want:     counts{Update: 3, Blocked: 1},
		},
		"maxUnavailable is zero": {
			bindings: several(2, bound, "old", maker.ready),
			pace:     Pace{Target: 2},
			want:     counts{Blocked: 2},
		},
		"removals come first": {
			bindings: join(several(2, unscheduled, "old", maker.ready), several(2, bound, "old", maker.ready)),
			pace:     Pace{Target: 2, MaxUnavailable: 1},
			want:     counts{Update: 1, Remove: 2, Blocked: 1},
		},
		"removal waits for its replacement": {
			bindings: join(several(1, unscheduled, "new", maker.ready), several(1, bound, "new", plain)),
			pace:     Pace{Target: 1},
			want:     counts{Settled: 1},
		},
		"binding without Works is removed at once": {
			bindings: join(several(1, unscheduled, "", plain), several(1, bound, "new", plain)),
			pace:     Pace{Target: 1},
			want:     counts{Remove: 1, Settled: 1},
		},
		"additions stay within maxSurge": {
			reason:   "two hold the placement, one may be added to the target of two",
			bindings: join(several(2, unscheduled, "new", plain), several(2, scheduled, "", plain)),
			pace:     Pace{Target: 2, MaxSurge: 1},
			want:     counts{Update: 1, Blocked: 1},
		},
		"terminating binding is not available": {
			bindings: join(several(1, bound, "new", func(m maker) maker { return m.ready().going() }), several(2, bound, "old", maker.ready)),
			pace:     Pace{Target: 2, MaxUnavailable: 1},
			want:     counts{Update: 1, Blocked: 1},
		},
		"terminating binding counts for the surge": {
			bindings: join(several(1, bound, "new", func(m maker) maker { return m.ready().going() }), several(1, bound, "new", maker.ready), several(1, scheduled, "", plain)),
			pace:     Pace{Target: 2},
			want:     counts{Blocked: 1, Settled: 1},
		},
		"terminating binding does not count if the placement moves": {
			bindings: join(several(2, bound, "new", func(m maker) maker { return m.ready().going() }), several(2, scheduled, "", plain)),
			pace:     Pace{Target: 2, Moves: true},
			want:     counts{Update: 2},
		},
		"failed terminating binding does not count": {
			bindings: join(several(1, bound, "new", func(m maker) maker { return m.failed().going() }), several(1, bound, "new", maker.ready), several(1, scheduled, "", plain)),
			pace:     Pace{Target: 2},
			want:     counts{Update: 1, Settled: 1},
		},
		"untracked member is ready after a while": {
			bindings: join(several(1, bound, "new", func(m maker) maker { return m.untracked(20 * time.Second) }), several(1, bound, "old", maker.ready)),
			pace:     Pace{Target: 2, MaxUnavailable: 1, UnavailablePeriod: time.Minute},
			want:     counts{Blocked: 1, Settled: 1},
			again:    40 * time.Second,
		},
		"untracked member has waited long enough": {
			bindings: join(several(1, bound, "new", func(m maker) maker { return m.untracked(time.Minute) }), several(1, bound, "old", maker.ready)),
			pace:     Pace{Target: 2, MaxUnavailable: 1, UnavailablePeriod: time.Minute},
			want:     counts{Update: 1, Settled: 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var bindings []placementv1beta1.BindingObject
			for _, b := range tc.bindings {
				bindings = append(bindings, b.ClusterResourceBinding)
			}
			steps := Plan(bindings, goal{snapshot: "new"}.candidates(pauses{}), tc.pace, now)
			got := counts{len(steps.Update), len(steps.Remove), len(steps.Blocked), len(steps.Settled)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nPlan() (-want +got):\n%s", tc.reason, diff)
			}
			if steps.Again != tc.again {
				t.Errorf("Again = %v, want %v", steps.Again, tc.again)
			}
		})
	}
}

func TestFailed_IgnoresUnfinishedSteps(t *testing.T) {
	cases := map[string]struct {
		binding maker
		want    bool
	}{
		"no conditions":              {binding("a", bound, "x"), false},
		"not applied":                {binding("a", bound, "x").failed(), true},
		"pending":                    {binding("a", bound, "x").with(placementv1beta1.ConditionApplied, metav1.ConditionFalse, placementv1beta1.ReasonApplyPending, 0), false},
		"condition of an older spec": {func() maker { m := binding("a", bound, "x").failed(); m.Generation++; return m }(), false},
		"works could not be synced":  {binding("a", bound, "x").with(placementv1beta1.ConditionWorkSynchronized, metav1.ConditionFalse, placementv1beta1.ReasonSyncWorkFailed, 0), true},
		"overrides do not fit":       {binding("a", bound, "x").with(placementv1beta1.ConditionOverridden, metav1.ConditionFalse, placementv1beta1.ReasonOverriddenFailed, 0), true},
		"overrides do not fit, previous version serves":  {binding("a", bound, "x").undispatched(), false},
		"previous version serves an unscheduled binding": {binding("a", unscheduled, "x").undispatched(), true},
	}
	for name, tc := range cases {
		if got := Failed(tc.binding.ClusterResourceBinding); got != tc.want {
			t.Errorf("%s: Failed() = %t, want %t", name, got, tc.want)
		}
	}
}

func TestPaceOf(t *testing.T) {
	percent, two, text, zero := intstr.FromString("30%"), intstr.FromInt32(2), intstr.FromString("2"), 0
	var five []placementv1beta1.BindingObject // One of them is being evicted.
	for _, m := range join(several(3, bound, "x", plain), several(1, scheduled, "", plain), several(2, unscheduled, "x", plain), several(1, bound, "x", maker.going)) {
		five = append(five, m.ClusterResourceBinding)
	}
	cases := map[string]struct {
		spec placementv1beta1.PlacementSpec
		want Pace
	}{
		"defaults": {want: Pace{Target: 5, MaxUnavailable: 2, MaxSurge: 2, UnavailablePeriod: time.Minute}},
		"percentages are rounded up": {
			spec: placementv1beta1.PlacementSpec{Strategy: placementv1beta1.RolloutStrategy{RollingUpdate: &placementv1beta1.RollingUpdateConfig{
				MaxUnavailable: &percent, MaxSurge: &two, UnavailablePeriodSeconds: &zero}}},
			want: Pace{Target: 5, MaxUnavailable: 2, MaxSurge: 2},
		},
		"numbers as strings": {
			spec: placementv1beta1.PlacementSpec{Strategy: placementv1beta1.RolloutStrategy{RollingUpdate: &placementv1beta1.RollingUpdateConfig{
				MaxUnavailable: &text, MaxSurge: &text, UnavailablePeriodSeconds: &zero}}},
			want: Pace{Target: 5, MaxUnavailable: 2, MaxSurge: 2},
		},
		"PickFixed counts names": {
			spec: placementv1beta1.PlacementSpec{Policy: &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixed, ClusterNames: []string{"a", "b"}}},
			want: Pace{Target: 2, MaxUnavailable: 1, MaxSurge: 1, UnavailablePeriod: time.Minute},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := PaceOf(&tc.spec, five)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("PaceOf() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestApplyStrategyOf_SetsAllDefaults(t *testing.T) {
	spec := &placementv1beta1.PlacementSpec{Strategy: placementv1beta1.RolloutStrategy{ApplyStrategy: &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ServerSideApply}}}
	want := &placementv1beta1.ApplyStrategy{
		Type: placementv1beta1.ServerSideApply, ComparisonOption: placementv1beta1.PartialComparison, WhenToApply: placementv1beta1.ApplyAlways,
		WhenToTakeOver: placementv1beta1.TakeOverAlways, ServerSideApplyConfig: &placementv1beta1.ServerSideApplyConfig{},
	}
	if diff := cmp.Diff(want, ApplyStrategyOf(spec), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("ApplyStrategyOf() (-want +got):\n%s", diff)
	}
}

func TestPlan_HeldStaysAndTakesNoTurn(t *testing.T) {
	all := join(several(1, bound, "old", maker.ready), several(1, scheduled, "", plain), several(1, unscheduled, "old", maker.ready))
	all = append(all, binding("free", bound, "old").ready())
	var bindings []placementv1beta1.BindingObject
	for _, m := range all {
		bindings = append(bindings, m.ClusterResourceBinding)
	}
	candidate := func(b placementv1beta1.BindingObject) Candidate {
		return candidateOf(b, goal{snapshot: "new"}.version(""), b.GetName() != "free")
	}
	steps := Plan(bindings, candidate, Pace{Target: 3, MaxUnavailable: 1}, now)
	if len(steps.Update) != 1 || steps.Update[0].GetName() != "free" || len(steps.Remove) != 0 || len(steps.Blocked) != 3 {
		t.Errorf("Plan() = %+v", steps)
	}
}
