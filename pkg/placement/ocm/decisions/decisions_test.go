// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package decisions

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/ocm/rolloutstrategy"
)

func TestIncomplete_ReportsWhy(t *testing.T) {
	scheduled := []metav1.Condition{{Type: ocmclusterv1beta1.ConditionSatisfied}}
	for name, tc := range map[string]struct {
		selected            int32
		conditions          []metav1.Condition
		annotations         map[string]string
		clusters, decisions int
		scheduled           bool
		undecided           bool
		short               bool
	}{
		"as many as selected":                                                              {selected: 3, conditions: scheduled, clusters: 3, decisions: 1},
		"a cluster between two decisions":                                                  {selected: 3, conditions: scheduled, clusters: 2, decisions: 2, short: true},
		"all decisions are deleted":                                                        {selected: 3, conditions: scheduled, short: true},
		"a cluster in two decisions, or not counted yet":                                   {selected: 3, conditions: scheduled, clusters: 4, decisions: 2},
		"nothing is selected":                                                              {conditions: scheduled, decisions: 1},
		"nothing is selected, and there are no decisions":                                  {conditions: scheduled},
		"a Placement that was re-created and not scheduled yet":                            {short: true},
		"a Placement that was re-created, of whose predecessor's decisions one is deleted": {clusters: 1, decisions: 1, scheduled: true, short: true},
		"decisions by hand, without a status":                                              {clusters: 1, decisions: 1},
		"a decision by hand whose status follows":                                          {decisions: 1, undecided: true, short: true},
		"a decision by hand for no cluster":                                                {decisions: 1},
		"decisions by hand, with the scheduler's last status": {
			selected: 3, conditions: scheduled, annotations: map[string]string{ocmclusterv1beta1.DisableAnnotation: "true"}, clusters: 1, decisions: 1,
		},
	} {
		placement := &ocmclusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}
		placement.Status.NumberOfSelectedClusters, placement.Status.Conditions = tc.selected, tc.conditions
		decisions := make([]ocmclusterv1beta1.PlacementDecision, tc.decisions)
		for i := range decisions {
			if !tc.undecided {
				decisions[i].Status.Decisions = []ocmclusterv1beta1.ClusterDecision{}
			}
			if tc.scheduled {
				decisions[i].OwnerReferences = []metav1.OwnerReference{{Kind: "Placement", Controller: new(true)}}
			}
		}
		if short := Incomplete(placement, tc.clusters, decisions); (short != "") != tc.short {
			t.Errorf("%s: %q, want short to be %v", name, short, tc.short)
		}
	}
}

func TestStrategy_TranslatesStrategies(t *testing.T) {
	config := clusterv1alpha1.RolloutConfig{
		MinSuccessTime: metav1.Duration{Duration: time.Minute}, ProgressDeadline: "2m", MaxFailures: intstr.FromString("10%"),
	}
	mandatory := clusterv1alpha1.MandatoryDecisionGroups{MandatoryDecisionGroups: []clusterv1alpha1.MandatoryDecisionGroup{{GroupName: "canary", GroupIndex: 4}, {GroupIndex: 2}}}
	names := []rolloutstrategy.GroupName{{Name: "canary", Index: 4}, {Index: 2}}
	base := rolloutstrategy.Strategy{MinSuccessTime: time.Minute, Deadline: ptr.To(2 * time.Minute), MaxFailures: intstr.FromString("10%")}
	of := func(kind rolloutstrategy.Type, change func(*rolloutstrategy.Strategy)) rolloutstrategy.Strategy {
		how := base
		how.Type = kind
		change(&how)
		return how
	}
	for name, tc := range map[string]struct {
		rollout clusterv1alpha1.RolloutStrategy
		want    rolloutstrategy.Strategy
	}{
		"none": {want: rolloutstrategy.Strategy{}},
		"all": {
			clusterv1alpha1.RolloutStrategy{Type: "All", All: &clusterv1alpha1.RolloutAllConfig{RolloutConfig: config}},
			of(rolloutstrategy.All, func(*rolloutstrategy.Strategy) {}),
		},
		"progressive": {
			clusterv1alpha1.RolloutStrategy{Type: "Progressive", Progressive: &clusterv1alpha1.RolloutProgressiveConfig{
				RolloutConfig: config, MandatoryDecisionGroups: mandatory, MaxConcurrency: intstr.FromInt32(3),
			}},
			of(rolloutstrategy.Progressive, func(s *rolloutstrategy.Strategy) { s.Mandatory, s.MaxConcurrency = names, intstr.FromInt32(3) }),
		},
		"per group": {
			clusterv1alpha1.RolloutStrategy{Type: "ProgressivePerGroup", ProgressivePerGroup: &clusterv1alpha1.RolloutPerGroupConfig{
				RolloutConfig: config, MandatoryDecisionGroups: mandatory,
			}},
			of(rolloutstrategy.ProgressivePerGroup, func(s *rolloutstrategy.Strategy) { s.Mandatory = names }),
		},
		"what another type says does not count": {
			clusterv1alpha1.RolloutStrategy{Type: "Progressive", All: &clusterv1alpha1.RolloutAllConfig{RolloutConfig: config}},
			rolloutstrategy.Strategy{Type: rolloutstrategy.Progressive},
		},
	} {
		got, err := Strategy(tc.rollout)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestGroups_JoinsSlicesOfAGroup(t *testing.T) {
	slice := func(index, name string, clusters ...string) ocmclusterv1beta1.PlacementDecision {
		d := ocmclusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}}
		if index != "" {
			d.Labels[ocmclusterv1beta1.DecisionGroupIndexLabel] = index
		}
		if name != "" {
			d.Labels[ocmclusterv1beta1.DecisionGroupNameLabel] = name
		}
		for _, cluster := range clusters {
			d.Status.Decisions = append(d.Status.Decisions, ocmclusterv1beta1.ClusterDecision{ClusterName: cluster})
		}
		return d
	}
	got := Groups([]ocmclusterv1beta1.PlacementDecision{
		slice("1", "", "d"), slice("0", "canary", "a"), slice("0", "canary", "b", ""), slice("", "", "c"), slice("x", "", "e"),
	})
	want := []rolloutstrategy.Group{{Index: 0, Name: "canary", Clusters: []string{"a", "b", "c", "e"}}, {Index: 1, Clusters: []string{"d"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Groups() (-want +got):\n%s", diff)
	}
}
