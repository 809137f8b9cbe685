// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package decisions

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/ocm/rolloutstrategy"
)

// Incomplete says why a list of that many clusters, in these decisions, is not everything that a
// Placement has selected. Writers of decisions may remove a moving cluster from the first decision
// before they add it to the second. A Placement that was just re-created has no decisions yet, or
// only some of its predecessor's, which the garbage collector deletes one by one. The status says
// nothing about decisions that people write instead of the scheduler. People create a decision before
// they can write its status.
func Incomplete(placement *ocmclusterv1beta1.Placement, clusters int, decisions []ocmclusterv1beta1.PlacementDecision) string {
	switch selected := int(placement.Status.NumberOfSelectedClusters); {
	case clusters < selected && placement.Annotations[ocmclusterv1beta1.DisableAnnotation] != "true":
		return fmt.Sprintf("its PlacementDecisions have %d clusters and its status has %d selected clusters", clusters, selected)
	case len(placement.Status.Conditions) > 0:
		return ""
	case len(decisions) == 0:
		return "it has no PlacementDecisions and no status yet"
	case slices.ContainsFunc(decisions, isScheduled):
		return "it has no status yet, so its PlacementDecisions may be incomplete"
	case slices.ContainsFunc(decisions, isUndecided):
		return "one of its PlacementDecisions has no status yet"
	}
	return ""
}

// isScheduled reports whether a scheduler wrote a decision: it makes the Placement its controller.
func isScheduled(decision ocmclusterv1beta1.PlacementDecision) bool {
	owner := metav1.GetControllerOf(&decision)
	return owner != nil && owner.Kind == "Placement"
}

func isUndecided(decision ocmclusterv1beta1.PlacementDecision) bool {
	return decision.Status.Decisions == nil && decision.DeletionTimestamp == nil
}

// Groups joins decisions with the same index. One without a readable index belongs to the first
// group: decisions that are written by hand need no index.
func Groups(decisions []ocmclusterv1beta1.PlacementDecision) []rolloutstrategy.Group {
	byIndex := map[int]*rolloutstrategy.Group{}
	for i := range decisions {
		if decisions[i].DeletionTimestamp != nil {
			continue
		}
		index, err := strconv.Atoi(decisions[i].Labels[ocmclusterv1beta1.DecisionGroupIndexLabel])
		if err != nil || index < 0 {
			index = 0
		}
		group := byIndex[index]
		if group == nil {
			group = &rolloutstrategy.Group{Index: index}
			byIndex[index] = group
		}
		if name := decisions[i].Labels[ocmclusterv1beta1.DecisionGroupNameLabel]; name != "" {
			group.Name = name
		}
		for _, decision := range decisions[i].Status.Decisions {
			if decision.ClusterName != "" {
				group.Clusters = append(group.Clusters, decision.ClusterName)
			}
		}
	}
	groups := make([]rolloutstrategy.Group, 0, len(byIndex))
	for _, group := range byIndex {
		groups = append(groups, *group)
	}
	slices.SortFunc(groups, func(a, b rolloutstrategy.Group) int { return cmp.Compare(a.Index, b.Index) })
	return groups
}
