// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package standard

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

// fleet is ClusterResourcePlacements and ResourcePlacements. Their decision is the members that have a
// binding that is not withdrawn.
type fleet struct {
	reader client.Reader
	// all publishes placements without a request.
	all bool
}

var _ source = (*fleet)(nil)

func (*fleet) name() string      { return "placement.standard" }
func (*fleet) group() string     { return placementv1beta1.GroupName }
func (f *fleet) publishes() bool { return f.all }
func (*fleet) kind(n string) string {
	if n == "" {
		return "ClusterResourcePlacement"
	}
	return "ResourcePlacement"
}

func (*fleet) empty(namespace string) client.Object { return objects.NewPlacement(namespace) }

// chosen waits until the scheduler has handled the latest policy: until then, the bindings match
// neither the previous nor the latest policy.
func (f *fleet) chosen(ctx context.Context, placement client.Object) (parts [][]string, done bool, err error) {
	key := client.ObjectKeyFromObject(placement)
	snapshots, err := objects.PolicySnapshots(ctx, f.reader, key)
	if err != nil {
		return nil, false, err
	}
	latest := objects.LatestPolicySnapshot(placement, snapshots)
	if latest == nil {
		return nil, false, nil
	}
	scheduled := meta.FindStatusCondition(latest.GetStatus().Conditions, placementv1beta1.ConditionScheduled)
	if scheduled == nil || scheduled.ObservedGeneration != latest.GetGeneration() {
		return nil, false, nil
	}
	bindings, err := objects.Bindings(ctx, f.reader, key)
	if err != nil {
		return nil, false, err
	}
	var members []string
	for _, b := range bindings {
		if counts(b) {
			members = append(members, b.GetSpec().TargetCluster)
		}
	}
	slices.Sort(members)
	return [][]string{slices.Compact(members)}, true, nil
}

func (*fleet) watch(b *builder.Builder) *builder.Builder {
	derived := objects.EnqueuePlacementAfter(settle)
	return b.
		Watches(&placementv1beta1.ClusterResourcePlacement{}, &handler.EnqueueRequestForObject{}, requestChanged()).
		Watches(&placementv1beta1.ResourcePlacement{}, &handler.EnqueueRequestForObject{}, requestChanged()).
		Watches(&placementv1beta1.ClusterSchedulingPolicySnapshot{}, derived).
		Watches(&placementv1beta1.SchedulingPolicySnapshot{}, derived).
		Watches(&placementv1beta1.ClusterResourceBinding{}, derived, chosenChanged()).
		Watches(&placementv1beta1.ResourceBinding{}, derived, chosenChanged())
}
