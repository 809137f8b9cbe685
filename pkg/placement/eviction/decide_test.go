// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// binding builds a binding in a state; it is available in generation 1 unless changed.
func binding(member string, state placementv1beta1.BindingState, change func(*placementv1beta1.ClusterResourceBinding)) placementv1beta1.BindingObject {
	b := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "shop-" + member, Generation: 1}}
	b.Spec.TargetCluster, b.Spec.State = member, state
	if state == placementv1beta1.BindingBound {
		b.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionAvailable, Status: metav1.ConditionTrue, ObservedGeneration: 1}}
	}
	if change != nil {
		change(b)
	}
	return b
}

func bound(members ...string) []placementv1beta1.BindingObject {
	var all []placementv1beta1.BindingObject
	for _, member := range members {
		all = append(all, binding(member, placementv1beta1.BindingBound, nil))
	}
	return all
}

func going(b *placementv1beta1.ClusterResourceBinding) { b.DeletionTimestamp = &metav1.Time{} }

func down(b *placementv1beta1.ClusterResourceBinding) { b.Status.Conditions = nil }

func withCondition(kind string, status metav1.ConditionStatus, reason string) func(*placementv1beta1.ClusterResourceBinding) {
	return func(b *placementv1beta1.ClusterResourceBinding) {
		b.Status.Conditions = []metav1.Condition{{Type: kind, Status: status, Reason: reason, ObservedGeneration: 1}}
	}
}

func placement(kind placementv1beta1.PlacementType, count int32) *placementv1beta1.ClusterResourcePlacement {
	p := &placementv1beta1.ClusterResourcePlacement{}
	p.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: kind}
	if kind == placementv1beta1.PickN {
		p.Spec.Policy.NumberOfClusters = &count
	}
	return p
}

func minAvailable(value intstr.IntOrString) *placementv1beta1.ClusterResourcePlacementDisruptionBudget {
	return &placementv1beta1.ClusterResourcePlacementDisruptionBudget{Spec: placementv1beta1.PlacementDisruptionBudgetSpec{MinAvailable: &value}}
}

func maxUnavailable(value intstr.IntOrString) *placementv1beta1.ClusterResourcePlacementDisruptionBudget {
	return &placementv1beta1.ClusterResourcePlacementDisruptionBudget{Spec: placementv1beta1.PlacementDisruptionBudgetSpec{MaxUnavailable: &value}}
}

func TestDecide(t *testing.T) {
	all, two, three := placement(placementv1beta1.PickAll, 0), placement(placementv1beta1.PickN, 2), placement(placementv1beta1.PickN, 3)
	deleting := placement(placementv1beta1.PickAll, 0)
	deleting.DeletionTimestamp = &metav1.Time{}
	with := func(others []placementv1beta1.BindingObject, b placementv1beta1.BindingObject) []placementv1beta1.BindingObject {
		return append(others, b)
	}
	const (
		refused = "invalid"
		yes     = "executed"
		no      = "blocked"
		goes    = "going already"
	)
	type want struct{ verdict, message string }
	within := func(n, of string) string {
		return "Eviction is allowed by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: " + n + ", totalPlacements: " + of
	}
	over := func(n, of string) string {
		return "Eviction is blocked by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: " + n + ", totalPlacements: " + of
	}
	cases := map[string]struct {
		c    Case
		want want
	}{
		"no such placement":           {Case{}, want{refused, messageNoPlacement}},
		"placement is being deleted":  {Case{Placement: deleting}, want{refused, messagePlacementDeleting}},
		"PickFixed":                   {Case{Placement: placement(placementv1beta1.PickFixed, 0)}, want{refused, messagePickFixed}},
		"no binding to the member":    {Case{Placement: all, Bindings: bound("b")}, want{refused, messageNoBinding}},
		"two bindings for the member": {Case{Placement: all, Bindings: bound("a", "a")}, want{refused, messageManyBindings}},
		"no policy picks all":         {Case{Placement: &placementv1beta1.ClusterResourcePlacement{}, Bindings: bound("a")}, want{yes, messageNoBudget}},
		"no budget":                   {Case{Placement: two, Bindings: bound("a", "b")}, want{yes, messageNoBudget}},
		"binding is being deleted": {Case{Placement: two, Bindings: with(nil, binding("a", placementv1beta1.BindingBound, going))},
			want{goes, messageBeingRemoved}},
		"nothing was sent yet": {Case{Placement: two, Bindings: with(nil, binding("a", placementv1beta1.BindingScheduled, nil))},
			want{no, messageNothingPlaced}},
		"unscheduled before anything was sent": {Case{Placement: two, Bindings: with(nil, binding("a", placementv1beta1.BindingUnscheduled, func(b *placementv1beta1.ClusterResourceBinding) {
			b.Annotations = map[string]string{placementv1beta1.PreviousBindingStateAnnotation: "Scheduled"}
		}))}, want{no, messageNothingPlaced}},
		"unscheduled with Works": {Case{Placement: two, Bindings: with(nil, binding("a", placementv1beta1.BindingUnscheduled, func(b *placementv1beta1.ClusterResourceBinding) {
			b.Annotations = map[string]string{placementv1beta1.PreviousBindingStateAnnotation: "Bound"}
		}))}, want{yes, messageNoBudget}},
		"failed binding needs no budget": {Case{Placement: two, Budget: minAvailable(intstr.FromInt32(2)),
			Bindings: with(bound("b"), binding("a", placementv1beta1.BindingBound, withCondition(placementv1beta1.ConditionApplied, metav1.ConditionFalse, "NotAllWorkHaveBeenApplied")))},
			want{yes, messageFailed}},
		"ReportDiff needs no budget": {Case{Placement: two, Budget: minAvailable(intstr.FromInt32(2)),
			Bindings: with(bound("b"), binding("a", placementv1beta1.BindingBound, withCondition(placementv1beta1.ConditionDiffReported, metav1.ConditionTrue, "AllWorkHaveDiffReported")))},
			want{yes, messageFailed}},

		"PickAll and a number of available": {Case{Placement: all, Bindings: bound("a", "b"), Budget: minAvailable(intstr.FromInt32(1))}, want{yes, within("2", "2")}},
		"PickAll at the limit":              {Case{Placement: all, Bindings: bound("a", "b"), Budget: minAvailable(intstr.FromInt32(2))}, want{no, over("2", "2")}},
		"PickAll and a percentage":          {Case{Placement: all, Bindings: bound("a", "b"), Budget: minAvailable(intstr.FromString("50%"))}, want{no, messageBadBudget}},
		"PickAll and unavailable":           {Case{Placement: all, Bindings: bound("a", "b"), Budget: maxUnavailable(intstr.FromInt32(1))}, want{no, messageBadBudget}},

		"percentage is rounded up":    {Case{Placement: three, Bindings: bound("a", "b"), Budget: minAvailable(intstr.FromString("50%"))}, want{no, over("2", "2")}},
		"one more can be unavailable": {Case{Placement: two, Bindings: bound("a", "b"), Budget: maxUnavailable(intstr.FromInt32(1))}, want{yes, within("2", "2")}},
		"maxUnavailable is reached": {Case{Placement: two, Bindings: with(bound("a"), binding("b", placementv1beta1.BindingBound, down)), Budget: maxUnavailable(intstr.FromInt32(1))},
			want{no, over("1", "2")}},
		"terminating binding is unavailable": {Case{Placement: two, Bindings: with(bound("a"), binding("b", placementv1beta1.BindingBound, going)), Budget: maxUnavailable(intstr.FromInt32(1))},
			want{no, over("1", "2")}},
		"maxUnavailable is zero":                {Case{Placement: two, Bindings: bound("a", "b"), Budget: maxUnavailable(intstr.FromInt32(0))}, want{no, over("2", "2")}},
		"unreachable members are not available": {Case{Placement: two, Bindings: bound("a", "b"), Budget: minAvailable(intstr.FromInt32(1)), Unreachable: sets.New("b")}, want{no, over("1", "2")}},
		"an unreachable member costs nothing":   {Case{Placement: three, Bindings: bound("a", "b", "c"), Budget: maxUnavailable(intstr.FromInt32(1)), Unreachable: sets.New("a", "b")}, want{yes, within("3", "3")}},
		"budget without a limit":                {Case{Placement: two, Bindings: bound("a", "b"), Budget: &placementv1beta1.ClusterResourcePlacementDisruptionBudget{}}, want{no, over("2", "2")}},
		"availability of an older spec does not count": {Case{Placement: two, Budget: minAvailable(intstr.FromInt32(1)),
			Bindings: with(bound("a"), binding("b", placementv1beta1.BindingBound, func(b *placementv1beta1.ClusterResourceBinding) { b.Generation = 2 }))}, want{no, over("1", "2")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.c.Member = "a"
			verdict := Decide(&tc.c)
			got := want{no, verdict.Message}
			switch {
			case !verdict.Valid:
				got.verdict = refused
			case verdict.Executed && verdict.Delete == nil:
				got.verdict = goes
			case verdict.Executed && verdict.Delete.GetSpec().TargetCluster == "a":
				got.verdict = yes
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("Decide() (-want +got):\n%s", diff)
			}
			if !verdict.Executed && verdict.Delete != nil {
				t.Error("blocked eviction deletes a binding")
			}
		})
	}
}

func TestVerdict_Conditions(t *testing.T) {
	type brief struct{ Type, Status, Reason, Message string }
	cases := map[string]struct {
		verdict Verdict
		want    []brief
	}{
		"invalid": {Verdict{Message: "no"}, []brief{{"Valid", "False", "ClusterResourcePlacementEvictionInvalid", "no"}}},
		"blocked": {Verdict{Valid: true, Message: "no"}, []brief{
			{"Valid", "True", "ClusterResourcePlacementEvictionValid", "Eviction is valid"}, {"Executed", "False", "ClusterResourcePlacementEvictionNotExecuted", "no"}}},
		"executed": {Verdict{Valid: true, Executed: true, Message: "yes"}, []brief{
			{"Valid", "True", "ClusterResourcePlacementEvictionValid", "Eviction is valid"}, {"Executed", "True", "ClusterResourcePlacementEvictionExecuted", "yes"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			eviction := &placementv1beta1.ClusterResourcePlacementEviction{}
			if isDecided(eviction) {
				t.Error("an eviction without conditions counts as decided")
			}
			eviction.Status.Conditions = tc.verdict.conditions(7)
			var got []brief
			for _, c := range eviction.Status.Conditions {
				if c.ObservedGeneration != 7 {
					t.Errorf("condition of generation %d", c.ObservedGeneration)
				}
				got = append(got, brief{c.Type, string(c.Status), c.Reason, c.Message})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("conditions() (-want +got):\n%s", diff)
			}
			if !isDecided(eviction) {
				t.Error("decided eviction would be decided again")
			}
		})
	}
}
