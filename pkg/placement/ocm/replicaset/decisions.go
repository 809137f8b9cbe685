// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/naming"
	"fleetgate.io/fleetgate/pkg/placement/ocm/rolloutstrategy"
)

// decided is a Placement's result.
type decided struct {
	// version changes with the Placement's spec.
	version string
	// settled is true if the decisions are known to be those for the version.
	settled bool
	groups  []rolloutstrategy.Group
	// clusters are those of all groups.
	clusters sets.Set[string]
	// outside are clusters that are not bound to the namespace, sorted. They are in no group.
	outside []string
	// selected and groupCount are from the Placement's status.
	selected, groupCount int
	// short says why selected clusters may be missing here; empty if the list is complete. An
	// incomplete list removes nothing.
	short string
}

// wanted is the number of clusters that should get it. While decisions are being written, it is
// larger than the number decided.
func (d *decided) wanted() int { return max(d.selected, d.clusters.Len()) }

// decisionsOf reads a Placement and its decisions from the cache; nil if there is no such
// Placement.
func (r *Reconciler) decisionsOf(ctx context.Context, key client.ObjectKey) (*decided, error) {
	placement := &ocmclusterv1beta1.Placement{}
	if err := r.Client.Get(ctx, key, placement); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil
		}
		return nil, fmt.Errorf("reading Placement %s: %w", key, err)
	}
	var list ocmclusterv1beta1.PlacementDecisionList
	if err := r.Client.List(ctx, &list, client.InNamespace(key.Namespace), client.MatchingLabels{ocmclusterv1beta1.PlacementLabel: naming.LabelValue(key.Name)},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the decisions of Placement %s: %w", key, err)
	}
	groups := groupsOf(list.Items)
	d := &decided{version: fmt.Sprint(placement.UID, "/", placement.Generation), groups: groups, clusters: sets.New[string](), selected: int(placement.Status.NumberOfSelectedClusters), groupCount: len(placement.Status.DecisionGroups)}
	for _, group := range groups {
		d.clusters.Insert(group.Clusters...)
	}
	d.short = shortOf(placement, d.clusters.Len(), list.Items)
	d.settled = d.clusters.Len() == d.selected && isObserved(placement)
	return d, r.confine(ctx, key.Namespace, d)
}

// isObserved reports whether a Placement's status is of its generation. Open Cluster Management's
// scheduler does not say.
func isObserved(placement *ocmclusterv1beta1.Placement) bool {
	conditions := placement.Status.Conditions
	return len(conditions) > 0 && !slices.ContainsFunc(conditions, func(c metav1.Condition) bool { return c.ObservedGeneration != placement.Generation })
}

// shortOf says why a list of that many clusters, in these decisions, is not everything that a
// Placement has selected. Writers of decisions may remove a moving cluster from the first decision
// before they add it to the second. A Placement that was just re-created has no decisions yet, or
// only some of its predecessor's, which the garbage collector deletes one by one. The status says
// nothing about decisions that people write instead of the scheduler.
func shortOf(placement *ocmclusterv1beta1.Placement, clusters int, decisions []ocmclusterv1beta1.PlacementDecision) string {
	switch selected := int(placement.Status.NumberOfSelectedClusters); {
	case clusters < selected && placement.Annotations[ocmclusterv1beta1.DisableAnnotation] != "true":
		return fmt.Sprintf("its PlacementDecisions have %d clusters and its status has %d selected clusters", clusters, selected)
	case len(placement.Status.Conditions) > 0:
		return ""
	case len(decisions) == 0:
		return "it has no PlacementDecisions and no status yet"
	case slices.ContainsFunc(decisions, isScheduled):
		return "it has no status yet, so its PlacementDecisions may be incomplete"
	}
	return ""
}

// isScheduled reports whether a scheduler wrote a decision: it makes the Placement its controller.
func isScheduled(decision ocmclusterv1beta1.PlacementDecision) bool {
	owner := metav1.GetControllerOf(&decision)
	return owner != nil && owner.Kind == "Placement"
}

// groupsOf joins decisions with the same index. One without a readable index belongs to the first
// group: decisions that are written by hand need no index.
func groupsOf(decisions []ocmclusterv1beta1.PlacementDecision) []rolloutstrategy.Group {
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
