// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/problems"
)

const generation = 5

func placementOf(change func(*placementv1beta1.ClusterResourcePlacement)) *placementv1beta1.ClusterResourcePlacement {
	p := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "p", Generation: generation}}
	if change != nil {
		change(p)
	}
	return p
}

// decided is a policy snapshot that selected the members; a name with the prefix "!" was wanted and not
// found.
func decided(members ...string) *placementv1beta1.ClusterSchedulingPolicySnapshot {
	s := &placementv1beta1.ClusterSchedulingPolicySnapshot{ObjectMeta: metav1.ObjectMeta{Name: "p-0", Generation: 1}}
	s.Status.ObservedCRPGeneration = generation
	condition := metav1.Condition{Type: "Scheduled", Status: metav1.ConditionTrue, Reason: "SchedulingPolicyFulfilled", ObservedGeneration: 1}
	for _, name := range members {
		missing, unselected := strings.CutPrefix(name, "!")
		s.Status.TargetClusters = append(s.Status.TargetClusters, placementv1beta1.ClusterDecision{ClusterName: missing, Selected: !unselected, Reason: "because"})
		if unselected {
			condition.Status, condition.Reason = metav1.ConditionFalse, "SchedulingPolicyUnfulfilled"
		}
	}
	s.Status.Conditions = []metav1.Condition{condition}
	return s
}

// bound is a binding to the latest snapshot, with conditions as "Type=Status/Reason".
func bound(member string, conditions ...string) *placementv1beta1.ClusterResourceBinding {
	b := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "p-" + member, Generation: 7}}
	b.Spec.TargetCluster, b.Spec.SchedulingPolicySnapshotName, b.Spec.ResourceSnapshotName = member, "p-0", "p-2-snapshot"
	for _, text := range conditions {
		kind, rest, _ := strings.Cut(text, "=")
		status, reason, _ := strings.Cut(rest, "/")
		b.Status.Conditions = append(b.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, ObservedGeneration: 7,
		})
	}
	return b
}

var allReady = []string{
	"RolloutStarted=True/RolloutStarted", "Overridden=True/NoOverrideSpecified", "WorkSynchronized=True/AllWorkSynced",
	"Applied=True/AllWorkHaveBeenApplied", "Available=True/AllWorkAreAvailable",
}

func brief(conditions []metav1.Condition, prefix string) []string {
	var all []string
	for _, c := range conditions {
		text := fmt.Sprintf("%s=%s/%s", strings.TrimPrefix(c.Type, prefix), c.Status, c.Reason)
		if c.ObservedGeneration != generation {
			text += fmt.Sprintf("@%d", c.ObservedGeneration)
		}
		all = append(all, text)
	}
	return all
}

func TestCompute_ExternalRolloutUsesCommonSnapshot(t *testing.T) {
	external := func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Strategy.Type = placementv1beta1.ExternalStrategy
	}
	on := func(b *placementv1beta1.ClusterResourceBinding, snapshot string) *placementv1beta1.ClusterResourceBinding {
		b.Spec.ResourceSnapshotName = snapshot
		return b
	}
	unknown := []string{"Scheduled=True/SchedulingPolicyFulfilled", "RolloutStarted=Unknown/RolloutControlledByExternalController"}
	cases := map[string]struct {
		bindings []*placementv1beta1.ClusterResourceBinding
		snapshot string
		want     []string
	}{
		"no member has a snapshot":         {[]*placementv1beta1.ClusterResourceBinding{on(bound("a"), ""), on(bound("b"), "")}, "", unknown},
		"members have different snapshots": {[]*placementv1beta1.ClusterResourceBinding{bound("a", allReady...), on(bound("b", allReady...), "p-1-snapshot")}, "", unknown},
		"one member has no snapshot":       {[]*placementv1beta1.ClusterResourceBinding{bound("a", allReady...), on(bound("b"), "")}, "", unknown},
		"one member has no conditions":     {[]*placementv1beta1.ClusterResourceBinding{bound("a", allReady...), bound("b")}, "p-2-snapshot", unknown},
		"all members have the same snapshot": {[]*placementv1beta1.ClusterResourceBinding{bound("a", allReady...), bound("b", allReady...)}, "p-2-snapshot", []string{
			"Scheduled=True/SchedulingPolicyFulfilled", "RolloutStarted=True/RolloutStarted", "Overridden=True/NoOverrideSpecified",
			"WorkSynchronized=True/WorkSynchronized", "Applied=True/ApplySucceeded", "Available=True/ResourceAvailable"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := &Observed{Placement: placementOf(external), Policy: decided("a", "b"), IndexOf: func(name string) string { return strings.Trim(name, "p-snhot") }}
			for _, b := range c.bindings {
				o.Bindings = append(o.Bindings, b)
			}
			if o.Snapshot = commonSnapshot(o.Policy, o.Bindings); o.Snapshot != c.snapshot {
				t.Errorf("commonSnapshot() = %q, want %q", o.Snapshot, c.snapshot)
			}
			if diff := cmp.Diff(c.want, brief(Compute(o).Conditions, "ClusterResourcePlacement")); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCompute_CountsReadyMembers(t *testing.T) {
	failed := append(append([]string(nil), allReady[:3]...), "Applied=False/NotAllWorkHaveBeenApplied")
	fixed := placementOf(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixed, ClusterNames: []string{"a", "b", "c"}}
	})
	for name, tc := range map[string]struct {
		policy   *placementv1beta1.ClusterSchedulingPolicySnapshot
		bindings []placementv1beta1.BindingObject
		want     string
	}{
		"one failed and one is missing": {decided("a", "b", "!c"), []placementv1beta1.BindingObject{bound("a", allReady...), bound("b", failed...)}, "1/3"},
		"one member has no conditions":  {decided("a", "b"), []placementv1beta1.BindingObject{bound("a", allReady...), bound("b")}, "1/2"},
		"no member selected":            {decided(), nil, "0/0"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Compute(&Observed{Placement: fixed, Policy: tc.policy, Snapshot: "p-2-snapshot", Index: "2", Bindings: tc.bindings}).Members
			if got != tc.want {
				t.Errorf("ready members = %q, want %q", got, tc.want)
			}
		})
	}
	if got := Compute(&Observed{Placement: fixed, Policy: &placementv1beta1.ClusterSchedulingPolicySnapshot{}}).Members; got != "" {
		t.Errorf("without a decision: %q", got)
	}
}

func TestCompute_SaysThatMemberWithoutHeartbeatIsAvailableAsLastReported(t *testing.T) {
	const silent = `member "b" has had no heartbeat since 2026-01-31T12:00:00Z: see its condition Joined`
	waiting := append(append([]string(nil), allReady[:4]...), "Available=False/NotAllWorkAreAvailable")
	for name, tc := range map[string]struct {
		b           []string
		all, member string
	}{
		"available": {allReady, "The selected resources are available on 2 cluster(s), on 1 of them as last reported: they have no heartbeat", ", as last reported: " + silent},
		"waiting":   {waiting, "The selected resources are not available yet on 1 cluster(s), see placementStatuses", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := Compute(&Observed{Placement: placementOf(nil), Policy: decided("a", "b"), Snapshot: "p-2-snapshot", Unreachable: map[string]string{"b": silent, "c": silent},
				Bindings: []placementv1beta1.BindingObject{bound("a", allReady...), bound("b", tc.b...)}})
			if all := meta.FindStatusCondition(got.Conditions, "ClusterResourcePlacementAvailable"); all == nil || all.Message != tc.all {
				t.Errorf("placement: %+v, want %q", all, tc.all)
			}
			for i, want := range []string{"", tc.member} {
				if c := meta.FindStatusCondition(got.PlacementStatuses[i].Conditions, placementv1beta1.ConditionAvailable); c.Message != want {
					t.Errorf("member %d: %q, want %q", i, c.Message, want)
				}
			}
		})
	}
}

func TestCompute_SummaryNamesWorstProblem(t *testing.T) {
	something := []placementv1beta1.ResourceIdentifier{{Kind: "Namespace", Name: "shop"}}
	failed := append(slices.Clone(allReady[:3]), "Applied=False/NotAllWorkHaveBeenApplied")
	pending := slices.Clone(allReady[:3])
	reportDiff := func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Strategy.ApplyStrategy = &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ReportDiff}
	}
	selecting := func(namespaces ...string) func(*placementv1beta1.ClusterResourcePlacement) {
		return func(p *placementv1beta1.ClusterResourcePlacement) {
			p.Spec.ResourceSelectors = nil
			for _, name := range namespaces {
				p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", Name: name})
			}
		}
	}
	for name, tc := range map[string]struct {
		change    func(*placementv1beta1.ClusterResourcePlacement)
		policy    *placementv1beta1.ClusterSchedulingPolicySnapshot
		resources []placementv1beta1.ResourceIdentifier
		bindings  []placementv1beta1.BindingObject
		available metav1.ConditionStatus
		reason    string
		// message is the beginning of the message.
		message string
	}{
		"all ready": {nil, decided("a"), something, []placementv1beta1.BindingObject{bound("a", allReady...)}, "True", "", ""},
		"empty selection, all conditions True": {nil, decided("a"), nil, []placementv1beta1.BindingObject{bound("a", allReady...)},
			"True", "NothingSelected", "spec.resourceSelectors match nothing on the hub"},
		"empty selection, no member": {nil, decided(), nil, nil, "", "NothingSelected", "spec.resourceSelectors match nothing on the hub"},
		"unmatched name": {selecting("shop", "shpo"), decided("a"), something, []placementv1beta1.BindingObject{bound("a", allReady...)},
			"True", "SelectorUnmatched", `spec.resourceSelectors[1] selects nothing: Namespace "shpo" is not on the hub`},
		"unmatched name does not hide a rollout": {selecting("shpo"), decided("a"), something, []placementv1beta1.BindingObject{bound("a", pending...)},
			"Unknown", "ApplyPending", "Waiting for news"},
		"failed apply": {nil, decided("a", "b"), something, []placementv1beta1.BindingObject{bound("a", failed...), bound("b", failed...)},
			"False", "ApplyFailed", `on member "a", `},
		"pending member does not hide a failure": {nil, decided("a", "b"), something,
			[]placementv1beta1.BindingObject{bound("a", pending...), bound("b", failed...)}, "Unknown", "ApplyFailed", `on member "b", `},
		"missing binding does not hide a failure": {nil, decided("a", "b"), something, []placementv1beta1.BindingObject{bound("b", failed...)}, "Unknown", "ApplyFailed", `on member "b", `},
		"in flight":           {nil, decided("a"), something, []placementv1beta1.BindingObject{bound("a", pending...)}, "Unknown", "ApplyPending", "Waiting for news"},
		"strategy ReportDiff": {reportDiff, decided("a"), something, []placementv1beta1.BindingObject{bound("a", allReady[:3]...)}, "", "DiffReportingPending", "Waiting for news"},
		"no decision yet":     {nil, &placementv1beta1.ClusterSchedulingPolicySnapshot{}, something, nil, "", "SchedulePending", "The scheduler has not handled"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Compute(&Observed{Placement: placementOf(tc.change), Policy: tc.policy, Snapshot: "p-2-snapshot", Index: "2", Resources: tc.resources, Bindings: tc.bindings})
			if got.Available != tc.available || got.Reason != tc.reason || !strings.HasPrefix(got.Message, tc.message) || (got.Message == "") != (tc.message == "") {
				t.Errorf("available %q, reason %q, message %q", got.Available, got.Reason, got.Message)
			}
		})
	}
}

func TestCompute(t *testing.T) {
	reportDiff := func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Strategy.ApplyStrategy = &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ReportDiff}
	}
	cases := map[string]struct {
		reason    string
		placement *placementv1beta1.ClusterResourcePlacement
		policy    *placementv1beta1.ClusterSchedulingPolicySnapshot
		bindings  []*placementv1beta1.ClusterResourceBinding
		want      []string
		members   map[string][]string
	}{
		"all ready": {
			policy:   decided("a", "b"),
			bindings: []*placementv1beta1.ClusterResourceBinding{bound("a", allReady...), bound("b", allReady...)},
			want: []string{"Scheduled=True/SchedulingPolicyFulfilled", "RolloutStarted=True/RolloutStarted", "Overridden=True/NoOverrideSpecified",
				"WorkSynchronized=True/WorkSynchronized", "Applied=True/ApplySucceeded", "Available=True/ResourceAvailable"},
			members: map[string][]string{"a": append([]string{"Scheduled=True/Scheduled"}, allReady...), "b": append([]string{"Scheduled=True/Scheduled"}, allReady...)},
		},
		"not decided yet": {
			reason: "an answer to an older generation is none",
			policy: func() *placementv1beta1.ClusterSchedulingPolicySnapshot {
				s := decided("a")
				s.Status.ObservedCRPGeneration--
				return s
			}(),
			want: []string{"Scheduled=Unknown/SchedulePending"},
		},
		"no members": {
			reason: "there is nothing to say beyond the decision",
			policy: decided(),
			want:   []string{"Scheduled=True/SchedulingPolicyFulfilled"},
		},
		"no binding yet": {
			policy:  decided("a"),
			want:    []string{"Scheduled=True/SchedulingPolicyFulfilled", "RolloutStarted=Unknown/RolloutStartedUnknown"},
			members: map[string][]string{"a": {"Scheduled=True/Scheduled", "RolloutStarted=Unknown/RolloutStartedUnknown"}},
		},
		"Unknown outweighs False, and both end the list": {
			policy: decided("a", "b", "c"),
			bindings: []*placementv1beta1.ClusterResourceBinding{
				bound("a", allReady...),
				bound("b", append(append([]string(nil), allReady[:3]...), "Applied=False/NotAllWorkHaveBeenApplied")...),
				bound("c", allReady[:3]...),
			},
			want: []string{"Scheduled=True/SchedulingPolicyFulfilled", "RolloutStarted=True/RolloutStarted", "Overridden=True/NoOverrideSpecified",
				"WorkSynchronized=True/WorkSynchronized", "Applied=Unknown/ApplyPending"},
			members: map[string][]string{
				"a": append([]string{"Scheduled=True/Scheduled"}, allReady...),
				"b": append(append([]string{"Scheduled=True/Scheduled"}, allReady[:3]...), "Applied=False/NotAllWorkHaveBeenApplied"),
				"c": append(append([]string{"Scheduled=True/Scheduled"}, allReady[:3]...), "Applied=Unknown/ApplyPending"),
			},
		},
		"condition of an older spec is unknown": {
			policy: decided("a"),
			bindings: []*placementv1beta1.ClusterResourceBinding{func() *placementv1beta1.ClusterResourceBinding {
				b := bound("a", allReady...)
				b.Status.Conditions[2].ObservedGeneration--
				return b
			}()},
			want:    []string{"Scheduled=True/SchedulingPolicyFulfilled", "RolloutStarted=True/RolloutStarted", "Overridden=True/NoOverrideSpecified", "WorkSynchronized=Unknown/WorkSynchronizedUnknown"},
			members: map[string][]string{"a": append(append([]string{"Scheduled=True/Scheduled"}, allReady[:2]...), "WorkSynchronized=Unknown/WorkSynchronizedUnknown")},
		},
		"member waits for the rollout": {
			policy: decided("a"),
			bindings: []*placementv1beta1.ClusterResourceBinding{func() *placementv1beta1.ClusterResourceBinding {
				b := bound("a", "RolloutStarted=False/RolloutNotStartedYet", "Applied=True/AllWorkHaveBeenApplied")
				b.Spec.ResourceSnapshotName = "p-1-snapshot"
				return b
			}()},
			want:    []string{"Scheduled=True/SchedulingPolicyFulfilled", "RolloutStarted=False/RolloutNotStartedYet"},
			members: map[string][]string{"a": {"Scheduled=True/Scheduled", "RolloutStarted=False/RolloutNotStartedYet"}},
		},
		"rollout has not reached a member": {
			reason: "conditions of an older snapshot do not apply to the latest",
			policy: decided("a"),
			bindings: []*placementv1beta1.ClusterResourceBinding{func() *placementv1beta1.ClusterResourceBinding {
				b := bound("a", allReady...)
				b.Spec.ResourceSnapshotName = "p-1-snapshot"
				return b
			}()},
			want:    []string{"Scheduled=True/SchedulingPolicyFulfilled", "RolloutStarted=Unknown/RolloutStartedUnknown"},
			members: map[string][]string{"a": {"Scheduled=True/Scheduled", "RolloutStarted=Unknown/RolloutStartedUnknown"}},
		},
		"missing member has no name": {
			placement: placementOf(func(p *placementv1beta1.ClusterResourcePlacement) {
				p.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixed, ClusterNames: []string{"a", "b"}}
			}),
			policy:   decided("a", "!b"),
			bindings: []*placementv1beta1.ClusterResourceBinding{bound("a", allReady...)},
			want: []string{"Scheduled=False/SchedulingPolicyUnfulfilled", "RolloutStarted=True/RolloutStarted", "Overridden=True/NoOverrideSpecified",
				"WorkSynchronized=True/WorkSynchronized", "Applied=True/ApplySucceeded", "Available=True/ResourceAvailable"},
			members: map[string][]string{"a": append([]string{"Scheduled=True/Scheduled"}, allReady...), "": {"Scheduled=False/ScheduleFailed"}},
		},
		"strategy ReportDiff": {
			placement: placementOf(reportDiff),
			policy:    decided("a"),
			bindings:  []*placementv1beta1.ClusterResourceBinding{bound("a", append(append([]string(nil), allReady[:3]...), "DiffReported=True/AllWorkHaveDiffReported")...)},
			want: []string{"Scheduled=True/SchedulingPolicyFulfilled", "RolloutStarted=True/RolloutStarted", "Overridden=True/NoOverrideSpecified",
				"WorkSynchronized=True/WorkSynchronized", "DiffReported=True/DiffReportingCompleted"},
			members: map[string][]string{"a": append(append([]string{"Scheduled=True/Scheduled"}, allReady[:3]...), "DiffReported=True/AllWorkHaveDiffReported")},
		},
		"outdated conditions are removed": {
			placement: placementOf(func(p *placementv1beta1.ClusterResourcePlacement) {
				p.Status.Conditions = []metav1.Condition{{Type: "ClusterResourcePlacementAvailable", Status: metav1.ConditionTrue}, {Type: "ClusterResourcePlacementStatusSynced", Status: metav1.ConditionTrue, ObservedGeneration: generation}}
			}),
			policy: decided(),
			want:   []string{"StatusSynced=True/", "Scheduled=True/SchedulingPolicyFulfilled"},
		},
		"terminating bindings and those of an older policy do not count": {
			policy: decided("a", "b"),
			bindings: []*placementv1beta1.ClusterResourceBinding{
				func() *placementv1beta1.ClusterResourceBinding {
					b := bound("a", allReady...)
					b.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
					return b
				}(),
				func() *placementv1beta1.ClusterResourceBinding {
					b := bound("b", allReady...)
					b.Spec.SchedulingPolicySnapshotName = "p-older"
					return b
				}(),
			},
			want: []string{"Scheduled=True/SchedulingPolicyFulfilled", "RolloutStarted=Unknown/RolloutStartedUnknown"},
			members: map[string][]string{
				"a": {"Scheduled=True/Scheduled", "RolloutStarted=Unknown/RolloutStartedUnknown"},
				"b": {"Scheduled=True/Scheduled", "RolloutStarted=Unknown/RolloutStartedUnknown"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			placement := tc.placement
			if placement == nil {
				placement = placementOf(nil)
			}
			o := &Observed{Placement: placement, Policy: tc.policy, Snapshot: "p-2-snapshot", Index: "2"}
			for _, b := range tc.bindings {
				o.Bindings = append(o.Bindings, b)
			}
			got := Compute(o)
			if diff := cmp.Diff(tc.want, brief(got.Conditions, "ClusterResourcePlacement")); diff != "" {
				t.Errorf("%s\nconditions (-want +got):\n%s", tc.reason, diff)
			}
			var members map[string][]string
			for _, m := range got.PlacementStatuses {
				if members == nil {
					members = map[string][]string{}
				}
				members[m.ClusterName] = brief(m.Conditions, "")
			}
			if diff := cmp.Diff(tc.members, members); diff != "" {
				t.Errorf("%s\nmembers (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCompute_IsDeterministic(t *testing.T) {
	then := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	placement := placementOf(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixed, ClusterNames: []string{"a", "b"}}
	})
	o := &Observed{Placement: placement, Policy: decided("a", "!b"), Snapshot: "p-2-snapshot", Index: "2",
		Bindings: []placementv1beta1.BindingObject{bound("a", allReady...)}}
	first := Compute(o)
	age := func(conditions []metav1.Condition) {
		for i := range conditions {
			conditions[i].LastTransitionTime = then
		}
	}
	age(first.Conditions)
	for i := range first.PlacementStatuses {
		age(first.PlacementStatuses[i].Conditions)
	}
	placement.Status = *first.DeepCopy()
	if diff := cmp.Diff(first, Compute(o)); diff != "" {
		t.Errorf("same input, other status: it would be written again (-first +second):\n%s", diff)
	}
}

func TestCompute_CopiesDetails(t *testing.T) {
	object := placementv1beta1.ResourceIdentifier{Version: "v1", Kind: "ConfigMap", Name: "x"}
	details := func(conditions ...string) *placementv1beta1.ClusterResourceBinding {
		b := bound("a", conditions...)
		b.Status.FailedPlacements = []placementv1beta1.FailedResourcePlacement{{ResourceIdentifier: object}}
		b.Status.DriftedPlacements = []placementv1beta1.DriftedResourcePlacement{{ResourceIdentifier: object}}
		b.Status.DiffedPlacements = []placementv1beta1.DiffedResourcePlacement{{ResourceIdentifier: object}}
		return b
	}
	cases := map[string]struct {
		binding                 *placementv1beta1.ClusterResourceBinding
		failed, drifted, diffed int
	}{
		"none before the apply":    {details(allReady[:3]...), 0, 0, 0},
		"all after a failed apply": {details(append(append([]string(nil), allReady[:3]...), "Applied=False/x")...), 1, 1, 1},
		"drifts without a failure": {details(allReady...), 0, 1, 0},
		"differences of a report":  {details(append(append([]string(nil), allReady[:3]...), "DiffReported=True/x")...), 0, 0, 1},
		"none of a failed report":  {details(append(append([]string(nil), allReady[:3]...), "DiffReported=False/x")...), 1, 0, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			placement := placementOf(func(p *placementv1beta1.ClusterResourcePlacement) {
				if meta.FindStatusCondition(tc.binding.Status.Conditions, placementv1beta1.ConditionDiffReported) != nil {
					p.Spec.Strategy.ApplyStrategy = &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ReportDiff}
				}
			})
			got := Compute(&Observed{Placement: placement, Policy: decided("a"), Snapshot: "p-2-snapshot", Bindings: []placementv1beta1.BindingObject{tc.binding}})
			m := got.PlacementStatuses[0]
			if diff := cmp.Diff([]int{tc.failed, tc.drifted, tc.diffed}, []int{len(m.FailedPlacements), len(m.DriftedPlacements), len(m.DiffedPlacements)}); diff != "" {
				t.Errorf("failed, drifted, diffed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEventsOf_ReportsStagesThatBecameTrue(t *testing.T) {
	with := func(kinds ...string) *placementv1beta1.ClusterResourcePlacement {
		return placementOf(func(p *placementv1beta1.ClusterResourcePlacement) {
			for _, kind := range kinds {
				p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{Type: "ClusterResourcePlacement" + kind, Status: metav1.ConditionTrue, ObservedGeneration: generation})
			}
		})
	}
	var got []string
	for _, e := range eventsOf(with("RolloutStarted", "Applied"), with("Scheduled", "RolloutStarted", "Applied", "WorkSynchronized", "Available")) {
		got = append(got, e.reason)
	}
	if diff := cmp.Diff([]string{"PlacementScheduleSuccess", "PlacementWorkSynchronized", "PlacementSyncSuccess", "PlacementAvailable", "PlacementRolloutCompleted"}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestCompute_WaitingRolloutNamesMember(t *testing.T) {
	waits := bound("c", "RolloutStarted=False/RolloutNotStartedYet")
	for name, tc := range map[string]struct {
		others []placementv1beta1.BindingObject
		want   string
	}{
		"unavailable member": {
			others: []placementv1beta1.BindingObject{bound("a", allReady...), bound("b", append(slices.Clone(allReady[:4]), "Available=False/NotAllWorkAreAvailable")...)},
			want:   `The rollout strategy makes the resources wait on 1 cluster(s), see placementStatuses; the first that is waited for is "b"`,
		},
		"no known member": {
			others: []placementv1beta1.BindingObject{bound("a", allReady...), bound("b", allReady...)},
			want:   `The rollout strategy makes the resources wait on 1 cluster(s), see placementStatuses`,
		},
	} {
		status := Compute(&Observed{Placement: placementOf(nil), Policy: decided("a", "b", "c"), Snapshot: "p-2-snapshot", Index: "2",
			Resources: []placementv1beta1.ResourceIdentifier{{Kind: "Namespace", Name: "a", Version: "v1"}}, Bindings: append(tc.others, waits)})
		started := meta.FindStatusCondition(status.Conditions, "ClusterResourcePlacementRolloutStarted")
		if started == nil || started.Message != tc.want {
			t.Errorf("%s: got %+v, want %q", name, started, tc.want)
		}
	}
}

func TestEventsOf_WarnsOncePerProblem(t *testing.T) {
	refused := func(members ...string) placementv1beta1.PlacementObject {
		placement := &placementv1beta1.ClusterResourcePlacement{}
		for _, name := range members {
			placement.Status.PlacementStatuses = append(placement.Status.PlacementStatuses, placementv1beta1.PerClusterPlacementStatus{
				ClusterName: name,
				Conditions:  []metav1.Condition{{Type: placementv1beta1.ConditionApplied, Status: metav1.ConditionFalse, Reason: "NotAllWorkHaveBeenApplied", Message: "Work \"w\" is not applied"}},
			})
		}
		return placement
	}
	inFlight := refused("a")
	inFlight.GetStatus().PlacementStatuses[0].Conditions[0].Reason = placementv1beta1.ReasonApplyInProgress
	want := []statusEvent{{"Warning", "PlacementApplyFailed", `on member "a", Work "w" is not applied`}}
	for name, test := range map[string]struct {
		before, after placementv1beta1.PlacementObject
		want          []statusEvent
	}{
		"refused":                    {refused(), refused("a"), want},
		"rejected after an attempt":  {inFlight, refused("a"), want},
		"in flight":                  {refused(), inFlight, nil},
		"still rejected":             {refused("a"), refused("a"), nil},
		"rejected by another member": {refused("a"), refused("a", "b"), nil},
		"recovered":                  {refused("a"), refused(), nil},
	} {
		if diff := cmp.Diff(test.want, eventsOf(test.before, test.after), cmp.AllowUnexported(statusEvent{})); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", name, diff)
		}
	}
}

func TestCompute_ReportsEmptySelection(t *testing.T) {
	for name, tt := range map[string]struct {
		index     string
		resources []placementv1beta1.ResourceIdentifier
		want      bool
	}{
		"no snapshot yet": {index: ""},
		"empty snapshot":  {index: "0", want: true},
		"something":       {index: "0", resources: []placementv1beta1.ResourceIdentifier{{Kind: "Namespace", Name: "a", Version: "v1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			status := Compute(&Observed{Placement: placementOf(nil), Policy: decided(), Index: tt.index, Resources: tt.resources})
			if got := strings.HasSuffix(status.Conditions[0].Message, "; "+problems.NothingSelected); got != tt.want {
				t.Errorf("reports empty selection = %v, want %v: %q", got, tt.want, status.Conditions[0].Message)
			}
		})
	}
}
