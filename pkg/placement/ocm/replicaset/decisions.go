// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/naming"
	"fleetgate.io/fleetgate/pkg/placement/ocm/decisions"
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
	groups := decisions.Groups(list.Items)
	d := &decided{version: fmt.Sprint(placement.UID, "/", placement.Generation), groups: groups, clusters: sets.New[string](), selected: int(placement.Status.NumberOfSelectedClusters), groupCount: len(placement.Status.DecisionGroups)}
	for _, group := range groups {
		d.clusters.Insert(group.Clusters...)
	}
	d.short = decisions.Incomplete(placement, d.clusters.Len(), list.Items)
	d.settled = d.clusters.Len() == d.selected && isObserved(placement)
	return d, r.confine(ctx, key.Namespace, d)
}

// isObserved reports whether a Placement's status is of its generation. Open Cluster Management's
// scheduler does not say.
func isObserved(placement *ocmclusterv1beta1.Placement) bool {
	conditions := placement.Status.Conditions
	return len(conditions) > 0 && !slices.ContainsFunc(conditions, func(c metav1.Condition) bool { return c.ObservedGeneration != placement.Generation })
}
