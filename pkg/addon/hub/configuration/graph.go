// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"

	"fleetgate.io/fleetgate/pkg/addon/hub/objects"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	"fleetgate.io/fleetgate/pkg/placement/ocm/decisions"
	"fleetgate.io/fleetgate/pkg/placement/ocm/rolloutstrategy"
)

// placed is a Placement of an install strategy, with its decisions.
type placed struct {
	strategy addonv1alpha1.PlacementStrategy
	decided  *objects.Decided
}

// node is the add-ons whose configurations come from one Placement, or from the defaults.
type node struct {
	desired  references
	selected int
	// own are the selected clusters that exist and that no later Placement selects.
	own      int
	addOns   map[string]*addonv1alpha1.ManagedClusterAddOn
	statuses map[string]rolloutstrategy.ClusterRolloutStatus
	how      rolloutstrategy.Strategy
	plan     rolloutstrategy.Plan
	// refused says why the rollout strategy is not followed.
	refused string
	// held is true if a later Placement may have selected more clusters than its decisions list:
	// add-ons keep their configurations until that is known.
	held bool
}

// graph assigns each add-on of a cluster to one node.
type graph struct {
	// nodes are those of the Placements, in their order.
	nodes []*node
	// defaults is the node of add-ons that no Placement selects. Their changes are not rolled out
	// step by step.
	defaults *node
}

// inputs are what a graph is computed from.
type inputs struct {
	status *addonv1alpha1.ClusterManagementAddOnStatus
	// placements are those of status.installProgressions, in the same order.
	placements []placed
	// addOns are the add-ons by cluster. Those that are being deleted do not count.
	addOns map[string]*addonv1alpha1.ManagedClusterAddOn
	// exists reports whether there is a cluster. Others hold up no rollout.
	exists func(cluster string) bool
	now    time.Time
}

// graphOf computes who has which configurations, and who is next.
func graphOf(in inputs) *graph {
	defaults := hashedDefaults(in.status.DefaultConfigReferences)
	g := &graph{defaults: &node{desired: defaults, addOns: map[string]*addonv1alpha1.ManagedClusterAddOn{}}}
	taken, held := sets.New[string](), false
	g.nodes = make([]*node, len(in.placements))
	// The last Placement that selects a cluster counts.
	for i := len(in.placements) - 1; i >= 0; i-- {
		g.nodes[i] = nodeOf(in, i, defaults, taken)
		g.nodes[i].held = held
		decided := in.placements[i].decided
		taken = taken.Union(decided.Clusters)
		// One that does not exist selects nothing.
		held = held || decided.Incomplete != "" && decided.Placement.UID != ""
	}
	g.defaults.held = held
	for cluster, addOn := range in.addOns {
		if !taken.Has(cluster) && addOn.DeletionTimestamp == nil {
			g.defaults.addOns[cluster] = addOn
		}
	}
	g.defaults.read()
	return g
}

// nodeOf is the node of a Placement without the clusters that later ones have taken.
func nodeOf(in inputs, i int, defaults references, taken sets.Set[string]) *node {
	from := in.placements[i]
	n := &node{
		desired:  placedReferences(defaults, in.status.InstallProgressions[i]),
		selected: from.decided.Clusters.Len(),
		addOns:   map[string]*addonv1alpha1.ManagedClusterAddOn{},
	}
	groups := make([]rolloutstrategy.Group, 0, len(from.decided.Groups))
	var absent []string
	for _, group := range from.decided.Groups {
		own := group
		own.Clusters = nil
		for _, cluster := range group.Clusters {
			if taken.Has(cluster) {
				continue
			}
			own.Clusters = append(own.Clusters, cluster)
			addOn := in.addOns[cluster]
			if addOn != nil && addOn.DeletionTimestamp != nil || addOn == nil && !in.exists(cluster) {
				absent = append(absent, cluster)
				continue
			}
			n.own++
			if addOn != nil {
				n.addOns[cluster] = addOn
			}
		}
		groups = append(groups, own)
	}
	n.read()
	for _, cluster := range absent {
		n.statuses[cluster] = rolloutstrategy.ClusterRolloutStatus{State: rolloutstrategy.Skipped}
	}
	if err := n.next(from, groups, in.now); err != nil {
		n.refused = fmt.Sprintf("The rollout strategy is invalid: %v", err)
	}
	return n
}

// next decides which add-ons are next. The error says why the rollout strategy is invalid.
func (n *node) next(from placed, groups []rolloutstrategy.Group, now time.Time) error {
	var err error
	if n.how, err = decisions.Strategy(from.strategy.RolloutStrategy); err != nil {
		return err
	}
	if n.how.Type == rolloutstrategy.Progressive && n.how.MaxConcurrency == (intstr.IntOrString{}) {
		n.how.MaxConcurrency = from.decided.Placement.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup
	}
	n.plan, err = rolloutstrategy.Next(n.how, groups, n.statuses, now)
	return err
}

// read computes the statuses of the add-ons that have been given their configurations.
func (n *node) read() {
	n.statuses = map[string]rolloutstrategy.ClusterRolloutStatus{}
	for cluster, addOn := range n.addOns {
		if isGiven(addOn.Status.ConfigReferences, referencesOf(addOn, n.desired)) {
			n.statuses[cluster] = statusOf(addOn)
		}
	}
}

// statusOf is the rollout status of an add-on that has been given its configurations.
func statusOf(addOn *addonv1alpha1.ManagedClusterAddOn) rolloutstrategy.ClusterRolloutStatus {
	progressing := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionProgressing)
	if progressing == nil {
		progressing = &metav1.Condition{}
	}
	since := func(state rolloutstrategy.State, reason string) rolloutstrategy.ClusterRolloutStatus {
		status := rolloutstrategy.ClusterRolloutStatus{State: state}
		if progressing.Reason == reason {
			// Conditions have whole seconds. Neither deadline nor success time is to be shorter than it was set.
			status.Since = progressing.LastTransitionTime.Add(time.Second)
		}
		return status
	}
	switch {
	case isApplied(addOn.Status.ConfigReferences):
		return since(rolloutstrategy.Succeeded, addonv1alpha1.ReasonCompleted)
	case progressing.Reason == addonv1alpha1.ReasonFailed:
		return since(rolloutstrategy.Failed, addonv1alpha1.ReasonFailed)
	default:
		return since(rolloutstrategy.Progressing, addonv1alpha1.ReasonProgressing)
	}
}

// next is when to compute the graph again if nothing changes before; zero is never.
func (g *graph) next() time.Time {
	var next time.Time
	for _, n := range g.nodes {
		if at := n.plan.Next; !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}
