// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package problems

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// on is a placement's status on a member: one condition that is False.
func on(member, condition, reason, message string, failed ...placementv1beta1.FailedResourcePlacement) placementv1beta1.PerClusterPlacementStatus {
	return placementv1beta1.PerClusterPlacementStatus{
		ClusterName: member, FailedPlacements: failed,
		Conditions: []metav1.Condition{
			{Type: placementv1beta1.ConditionScheduled, Status: metav1.ConditionTrue},
			{Type: condition, Status: metav1.ConditionFalse, Reason: reason, Message: message},
		},
	}
}

func failed(kind, namespace, name, condition, message string) placementv1beta1.FailedResourcePlacement {
	return placementv1beta1.FailedResourcePlacement{
		ResourceIdentifier: placementv1beta1.ResourceIdentifier{Kind: kind, Namespace: namespace, Name: name},
		Condition:          metav1.Condition{Type: condition, Message: message},
	}
}

func TestOf_ReportsEmptySelection(t *testing.T) {
	placement := &placementv1beta1.ClusterResourcePlacement{}
	scheduled := metav1.Condition{Type: placement.ConditionType(placementv1beta1.ConditionScheduled), Status: metav1.ConditionTrue}
	placement.Status = placementv1beta1.PlacementStatus{ObservedResourceIndex: "0", Conditions: []metav1.Condition{scheduled}}
	want := Trouble{Condition: placementv1beta1.ConditionScheduled, Message: NothingSelected, Waits: true}
	if got := Of(placement); len(got) != 1 || got[0] != want {
		t.Errorf("got %+v", got)
	}
	placement.Status.SelectedResources = []placementv1beta1.ResourceIdentifier{{Kind: "Namespace", Name: "shop"}}
	if got := Of(placement); len(got) > 0 {
		t.Errorf("placement with resources has problems: %+v", got)
	}
	placement.Status = placementv1beta1.PlacementStatus{Conditions: []metav1.Condition{scheduled}}
	if got := Of(placement); len(got) > 0 {
		t.Errorf("placement without a selection yet has problems: %+v", got)
	}
}

func TestUnmatchedNames_NamesFirstAndCountsOthers(t *testing.T) {
	namespace := func(name string) placementv1beta1.ResourceSelectorTerm {
		return placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", Name: name}
	}
	role := placementv1beta1.ResourceSelectorTerm{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: "shop"}
	labelled := placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", LabelSelector: &metav1.LabelSelector{}}
	shop := placementv1beta1.ResourceIdentifier{Version: "v1", Kind: "Namespace", Name: "shop"}
	for name, test := range map[string]struct {
		selectors []placementv1beta1.ResourceSelectorTerm
		selected  []placementv1beta1.ResourceIdentifier
		want      string
	}{
		"all selected":     {[]placementv1beta1.ResourceSelectorTerm{namespace("shop"), labelled}, []placementv1beta1.ResourceIdentifier{shop}, ""},
		"nothing selected": {[]placementv1beta1.ResourceSelectorTerm{namespace("shop")}, nil, ""},
		"same name, other kind": {[]placementv1beta1.ResourceSelectorTerm{namespace("shop"), role}, []placementv1beta1.ResourceIdentifier{shop},
			`spec.resourceSelectors[1] selects nothing: ClusterRole "shop" is not on the hub, or cannot be placed`},
		"two": {[]placementv1beta1.ResourceSelectorTerm{namespace("shpo"), namespace("shop"), role}, []placementv1beta1.ResourceIdentifier{shop},
			`spec.resourceSelectors[0] selects nothing: Namespace "shpo" is not on the hub, or cannot be placed (and 1 more selector)`},
		"three": {[]placementv1beta1.ResourceSelectorTerm{namespace("a"), namespace("b"), namespace("c")}, []placementv1beta1.ResourceIdentifier{shop},
			`spec.resourceSelectors[0] selects nothing: Namespace "a" is not on the hub, or cannot be placed (and 2 more selectors)`},
	} {
		placement := &placementv1beta1.ClusterResourcePlacement{}
		placement.Spec.ResourceSelectors = test.selectors
		if got := UnmatchedNames(placement, &placementv1beta1.PlacementStatus{SelectedResources: test.selected}); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestOf_WorstFirstWithMemberObjectAndMessage(t *testing.T) {
	const applied, available = placementv1beta1.ConditionApplied, placementv1beta1.ConditionAvailable
	drifted := on("d", available, "NotAllWorkAreAvailable", "Work \"w\" is not available yet")
	drifted.DriftedPlacements = []placementv1beta1.DriftedResourcePlacement{{
		ResourceIdentifier: placementv1beta1.ResourceIdentifier{Kind: "ClusterRole", Name: "reader"},
		ObservedDrifts:     []placementv1beta1.PatchDetail{{Path: "/rules/0"}},
	}}
	for name, test := range map[string]struct {
		scheduled *metav1.Condition
		members   []placementv1beta1.PerClusterPlacementStatus
		want      []string
	}{
		"no problems": {
			members: []placementv1beta1.PerClusterPlacementStatus{{ClusterName: "a", Conditions: []metav1.Condition{{Type: applied, Status: metav1.ConditionTrue}}}},
		},
		"missing members do not hide a rejected object": {
			scheduled: &metav1.Condition{Status: metav1.ConditionFalse, Message: "1 of 3 members were found"},
			members: []placementv1beta1.PerClusterPlacementStatus{
				on("a", available, "NotAllWorkAreAvailable", "Work \"w\" is not available yet", failed("Deployment", "shop", "web", available, "0 of 3 replicas are ready")),
				on("b", applied, "NotAllWorkHaveBeenApplied", "Work \"w\" is not applied", failed("ConfigMap", "shop", "settings", applied, "somebody else's")),
			},
			want: []string{
				"1 of 3 members were found",
				`on member "b", ConfigMap shop/settings: somebody else's`,
				`on member "a", Deployment shop/web: 0 of 3 replicas are ready`,
			},
		},
		"rejection comes before members in flight": {
			members: []placementv1beta1.PerClusterPlacementStatus{
				on("a", applied, placementv1beta1.ReasonApplyInProgress, "Work \"w\" is being applied"),
				on("b", applied, placementv1beta1.ReasonApplyInProgress, "Work \"w\" is being applied"),
				on("c", applied, "NotAllWorkHaveBeenApplied", "Work \"w\" is not applied"),
			},
			want: []string{`on member "c", Work "w" is not applied`},
		},
		"members in flight do not count as rejected": {
			members: []placementv1beta1.PerClusterPlacementStatus{
				on("a", applied, "NotAllWorkHaveBeenApplied", "Work \"w\" is not applied"),
				on("b", applied, placementv1beta1.ReasonApplyInProgress, "Work \"w\" is being applied"),
				on("c", applied, "NotAllWorkHaveBeenApplied", "Work \"w\" is not applied"),
			},
			want: []string{`on member "a", Work "w" is not applied (and on 1 more member)`},
		},
		"failure of another condition is distinguished": {
			members: []placementv1beta1.PerClusterPlacementStatus{
				on("a", applied, "NotAllWorkHaveBeenApplied", "Work \"w\" is not applied", failed("ConfigMap", "shop", "settings", available, "not there yet")),
			},
			want: []string{`on member "a", Work "w" is not applied`},
		},
		"drift comes before a waiting rollout": {
			members: []placementv1beta1.PerClusterPlacementStatus{drifted, on("e", available, "NotAllWorkAreAvailable", "not yet")},
			want: []string{
				`on member "d", ClusterRole reader: it was changed there, first in /rules/0`,
				`on member "d", Work "w" is not available yet (and on 1 more member)`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			placement := &placementv1beta1.ClusterResourcePlacement{}
			placement.Status.PlacementStatuses = test.members
			if c := test.scheduled; c != nil {
				c.Type = placement.ConditionType(placementv1beta1.ConditionScheduled)
				placement.Status.Conditions = []metav1.Condition{*c}
			}
			var got []string
			for _, found := range Of(placement) {
				got = append(got, found.String())
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got\n%q\nwant\n%q", got, test.want)
			}
		})
	}
}
