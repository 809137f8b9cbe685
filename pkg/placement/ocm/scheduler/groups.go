// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/framework"
)

// group is clusters of one group, in the order of their decisions.
type group struct {
	name   string
	places []framework.Place
}

// grouping divides clusters into groups.
type grouping struct {
	named []namedGroup
	per   intstr.IntOrString
	// byScore orders clusters by their scores instead of their names.
	byScore bool
}

// namedGroup contains the clusters that both selectors match.
type namedGroup struct {
	name           string
	labels, claims labels.Selector
}

// newGrouping fails for an invalid strategy.
func newGrouping(spec *ocmclusterv1beta1.PlacementSpec) (*grouping, error) {
	strategy := &spec.DecisionStrategy.GroupStrategy
	g := &grouping{per: strategy.ClustersPerDecisionGroup, byScore: spec.SortBy == ocmclusterv1beta1.SortByScore}
	if _, err := perGroup(g.per, 1); err != nil {
		return nil, err
	}
	for _, wanted := range strategy.DecisionGroups {
		byLabel, byClaim, err := selectors(&wanted.GroupClusterSelector.LabelSelector, &wanted.GroupClusterSelector.ClaimSelector)
		if err != nil {
			return nil, fmt.Errorf("decision group %q: %w", wanted.GroupName, err)
		}
		g.named = append(g.named, namedGroup{name: wanted.GroupName, labels: byLabel, claims: byClaim})
	}
	return g, nil
}

// selectors parses selectors over labels and over claims.
func selectors(byLabel *metav1.LabelSelector, byClaim *ocmclusterv1beta1.ClusterClaimSelector) (ofLabels, ofClaims labels.Selector, err error) {
	if ofLabels, err = metav1.LabelSelectorAsSelector(byLabel); err != nil {
		return nil, nil, err
	}
	ofClaims, err = metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: byClaim.MatchExpressions})
	return ofLabels, ofClaims, err
}

// cut divides clusters into groups. Named groups come first, in their order, and take the remaining
// clusters that they select; the rest has no name. Each group is cut to its size. There is at least
// one group.
func (g *grouping) cut(picked []framework.Place) []group {
	size, err := perGroup(g.per, len(picked))
	if err != nil {
		size = len(picked) // newGrouping has refused it.
	}
	rest := slices.Clone(picked)
	if !g.byScore {
		slices.SortFunc(rest, func(a, b framework.Place) int { return strings.Compare(a.Cluster.Name, b.Cluster.Name) })
	}
	var groups []group
	for _, named := range g.named {
		var taken, left []framework.Place
		for _, place := range rest {
			if named.labels.Matches(labels.Set(place.Cluster.Labels)) && named.claims.Matches(labels.Set(place.Cluster.Properties)) {
				taken = append(taken, place)
			} else {
				left = append(left, place)
			}
		}
		groups, rest = append(groups, divide(named.name, taken, size)...), left
	}
	groups = append(groups, divide("", rest, size)...)
	if len(groups) == 0 {
		groups = []group{{}}
	}
	return groups
}

func divide(name string, places []framework.Place, size int) []group {
	var groups []group
	for chunk := range slices.Chunk(places, max(1, size)) {
		groups = append(groups, group{name: name, places: chunk})
	}
	return groups
}

// perGroup is the maximum size of a group: a number, or a rounded-up percentage of the total. Any
// other value means all.
func perGroup(per intstr.IntOrString, total int) (int, error) {
	size := per.IntValue()
	if per.Type == intstr.String {
		percent, ok := strings.CutSuffix(per.StrVal, "%")
		share, err := strconv.ParseFloat(percent, 64)
		if !ok || err != nil {
			return 0, fmt.Errorf("%v invalid type: string is not a percentage", per.String())
		}
		// The order of operations determines rounding, on which readers of sizes rely.
		size = int(math.Ceil(share / 100 * float64(total)))
	}
	if size <= 0 || size > total {
		size = total
	}
	return size, nil
}
