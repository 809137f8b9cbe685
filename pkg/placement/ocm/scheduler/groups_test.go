// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	"fleetgate.io/fleetgate/pkg/placement/framework"
)

func place(name string, score int64, labels map[string]string) framework.Place {
	return framework.Place{Score: score, Cluster: &framework.Cluster{Name: name, Labels: labels, Properties: map[string]string{"claim": name}}}
}

// numbered are places c000, c001 and so on.
func numbered(n int) []framework.Place {
	var places []framework.Place
	for i := range n {
		places = append(places, place(fmt.Sprintf("c%03d", i), int64(i), nil))
	}
	return places
}

func namesOf(places []framework.Place) []string {
	names := make([]string, 0, len(places))
	for _, p := range places {
		names = append(names, p.Cluster.Name)
	}
	return names
}

func membersOf(groups []group) []string {
	var all []string
	for _, g := range groups {
		all = append(all, fmt.Sprint(g.name, namesOf(g.places)))
	}
	return all
}

func strategy(per intstr.IntOrString, groups ...ocmclusterv1beta1.DecisionGroup) *ocmclusterv1beta1.PlacementSpec {
	spec := &ocmclusterv1beta1.PlacementSpec{}
	spec.DecisionStrategy.GroupStrategy = ocmclusterv1beta1.GroupStrategy{ClustersPerDecisionGroup: per, DecisionGroups: groups}
	return spec
}

func named(name string, labels map[string]string, claims ...metav1.LabelSelectorRequirement) ocmclusterv1beta1.DecisionGroup {
	return ocmclusterv1beta1.DecisionGroup{GroupName: name, GroupClusterSelector: ocmclusterv1beta1.GroupClusterSelector{
		LabelSelector: metav1.LabelSelector{MatchLabels: labels}, ClaimSelector: ocmclusterv1beta1.ClusterClaimSelector{MatchExpressions: claims},
	}}
}

func TestGrouping_DividesClusters(t *testing.T) {
	canary := map[string]string{"canary": "true"}
	picked := []framework.Place{place("d", 4, nil), place("b", 3, canary), place("a", 2, nil), place("c", 1, canary), place("e", 0, nil)}
	claim := metav1.LabelSelectorRequirement{Key: "claim", Operator: metav1.LabelSelectorOpIn, Values: []string{"c", "e"}}
	byScore := strategy(intstr.FromInt32(2))
	byScore.SortBy = ocmclusterv1beta1.SortByScore
	for name, tc := range map[string]struct {
		spec   *ocmclusterv1beta1.PlacementSpec
		picked []framework.Place
		want   []string
	}{
		"nothing is said":                {strategy(intstr.IntOrString{}), picked, []string{"[a b c d e]"}},
		"all of them":                    {strategy(intstr.FromString("100%")), picked, []string{"[a b c d e]"}},
		"two each":                       {strategy(intstr.FromInt32(2)), picked, []string{"[a b]", "[c d]", "[e]"}},
		"more than there are":            {strategy(intstr.FromInt32(9)), picked, []string{"[a b c d e]"}},
		"a share is rounded up":          {strategy(intstr.FromString("41%")), picked, []string{"[a b c]", "[d e]"}},
		"a named group comes first":      {strategy(intstr.IntOrString{}, named("canary", canary)), picked, []string{"canary[b c]", "[a d e]"}},
		"a named group is cut too":       {strategy(intstr.FromInt32(1), named("canary", canary)), picked, []string{"canary[b]", "canary[c]", "[a]", "[d]", "[e]"}},
		"each cluster is in one":         {strategy(intstr.IntOrString{}, named("canary", canary), named("claimed", nil, claim)), picked, []string{"canary[b c]", "claimed[e]", "[a d]"}},
		"label and claim":                {strategy(intstr.IntOrString{}, named("both", canary, claim)), picked, []string{"both[c]", "[a b d e]"}},
		"a group of none is not there":   {strategy(intstr.IntOrString{}, named("none", map[string]string{"x": "y"})), picked, []string{"[a b c d e]"}},
		"one group though there is none": {strategy(intstr.FromString("10%"), named("canary", canary)), nil, []string{"[]"}},
		"by score":                       {byScore, picked, []string{"[d b]", "[a c]", "[e]"}},
	} {
		grouping, err := newGrouping(tc.spec)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tc.want, membersOf(grouping.cut(tc.picked))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestPerGroup_Sizes(t *testing.T) {
	for _, tc := range []struct {
		per   intstr.IntOrString
		total int
		want  int
	}{
		{intstr.FromInt32(0), 7, 7}, {intstr.FromInt32(-1), 7, 7}, {intstr.FromInt32(3), 7, 3}, {intstr.FromString("1%"), 7, 1}, {intstr.FromString("50%"), 7, 4},
		// A percentage in floating point, rounded up as upstream does.
		{intstr.FromString("7%"), 100, 8}, {intstr.FromString("100%"), 0, 0}, {intstr.FromString("29%"), 100, 29},
	} {
		if got, err := perGroup(tc.per, tc.total); err != nil || got != tc.want {
			t.Errorf("%s of %d: %d, %v, want %d", tc.per.String(), tc.total, got, err, tc.want)
		}
	}
	for _, wrong := range []string{"", "5", "x%"} {
		if _, err := newGrouping(strategy(intstr.FromString(wrong))); err == nil {
			t.Errorf("%q is taken for a percentage", wrong)
		}
	}
	bad := metav1.LabelSelectorRequirement{Key: "claim", Operator: "Is"}
	if _, err := newGrouping(strategy(intstr.IntOrString{}, named("canary", nil, bad))); err == nil {
		t.Error("an operator that is none is taken")
	}
}

func cutOf(cut [][]framework.Place) [][]string {
	var all [][]string
	for _, slice := range cut {
		all = append(all, namesOf(slice))
	}
	return all
}

func TestSlicesOf_JoinsUpToAHundred(t *testing.T) {
	places := numbered(100)
	if got := slicesOf(places, [][]string{{"c001"}, {"c000", "c099"}}, false); len(got) != 1 || len(got[0]) != 100 {
		t.Errorf("100 clusters are in %d slices", len(got))
	}
	if got := slicesOf(nil, [][]string{{"c001"}}, false); len(got) != 1 || len(got[0]) != 0 {
		t.Errorf("no cluster is in %v", cutOf(got))
	}
}

func TestSlicesOf_ByScoreKeepsOrderAcrossSlices(t *testing.T) {
	places := numbered(250)
	slices.Reverse(places)
	cut := slicesOf(places, cutOf(slicesOf(numbered(250), nil, false)), true)
	if got := slices.Concat(cut...); len(cut) != 3 || !slices.Equal(namesOf(got), namesOf(places)) {
		t.Errorf("%d slices: %v", len(cut), namesOf(got))
	}
}

// Upstream's global set has an empty selector, which matches everything.
func TestSelectorOf_EmptySelectorMatchesEveryCluster(t *testing.T) {
	r := cacheOf(managed("c1", nil), managed("c2", func(c *clusterv1.ManagedCluster) { c.Labels = nil }))
	global := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "global"}}
	global.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{}}
	r.setSet("global", global)
	r.setBinding("team", "global", true)
	if from := r.availableTo("team", mustParse(t, placed(nil))); len(from.clusters) != 2 || from.bound != 2 {
		t.Errorf("got %d clusters of %d sets", len(from.clusters), from.bound)
	}
}
