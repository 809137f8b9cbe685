// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/kube/naming"
	"fleetgate.io/fleetgate/pkg/placement/ocm/decisions"
	"fleetgate.io/fleetgate/pkg/placement/ocm/rolloutstrategy"
)

// ManagedByHub reports whether the hub follows the install strategy of an add-on. Otherwise the
// add-on's own manager does.
func ManagedByHub(addOn *addonv1alpha1.ClusterManagementAddOn) bool {
	value, set := addOn.Annotations[addonv1alpha1.LifecycleAnnotation]
	return !set || value == addonv1alpha1.LifecycleHub
}

// FollowsPlacements reports whether Placements choose the clusters of an add-on.
func FollowsPlacements(addOn *addonv1alpha1.ClusterManagementAddOn) bool {
	return addOn.Spec.InstallStrategy.Type == addonv1alpha1.InstallPlacements
}

// Decided is the result of a Placement.
type Decided struct {
	Groups []rolloutstrategy.Group
	// Clusters are those of all groups.
	Clusters sets.Set[string]
	// Incomplete says why selected clusters may be missing; empty if the list is complete. An
	// incomplete list removes nothing.
	Incomplete string
	// Placement is empty if it does not exist.
	Placement *ocmclusterv1beta1.Placement
}

// DecidedBy reads a Placement and its decisions from the cache. The list of a Placement that does
// not exist is empty and incomplete: re-creating it must not remove all add-ons meanwhile.
func DecidedBy(ctx context.Context, cache client.Reader, ref addonv1alpha1.PlacementRef) (*Decided, error) {
	d := &Decided{Clusters: sets.New[string](), Placement: &ocmclusterv1beta1.Placement{}}
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	exists, err := reconcileutil.GetIfExists(ctx, cache, key, d.Placement, "reading Placement %s", key)
	if err != nil {
		return nil, err
	}
	if !exists {
		d.Incomplete = fmt.Sprintf("Placement %s does not exist", key)
		return d, nil
	}
	var list ocmclusterv1beta1.PlacementDecisionList
	if err := cache.List(ctx, &list, client.InNamespace(ref.Namespace), client.MatchingLabels{ocmclusterv1beta1.PlacementLabel: naming.LabelValue(ref.Name)},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the decisions of Placement %s: %w", key, err)
	}
	d.Groups = decisions.Groups(list.Items)
	for _, group := range d.Groups {
		d.Clusters.Insert(group.Clusters...)
	}
	if short := decisions.Incomplete(d.Placement, d.Clusters.Len(), list.Items); short != "" {
		d.Incomplete = fmt.Sprintf("Placement %s: %s", key, short)
	}
	return d, nil
}
