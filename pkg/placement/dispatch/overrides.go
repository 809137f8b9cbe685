// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"fmt"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/placement/objects"
	"fleetgate.io/fleetgate/pkg/placement/override"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
)

// misfit is the error for a binding's overrides that do not fit its resources.
func misfit(err error) error {
	return refusal.New(placementv1beta1.ReasonOverriddenFailed, "the overrides cannot be applied: %w", err)
}

// overridden returns the group with the overrides for the binding's member. It keeps empty parts: an
// empty Work removes resources from the member, and without the part another Work could take its name.
func (r *Reconciler) overridden(ctx context.Context, b placementv1beta1.BindingObject, placement placementv1beta1.PlacementObject,
	member *clusterv1beta1.MemberCluster, group *snapshot.Group, have []*placementv1beta1.Work,
) (*snapshot.Group, error) {
	if !hasOverrides(b) {
		return group, r.mayDelete(ctx, b, placement, member, nil, group, have)
	}
	set, err := override.Named(ctx, r.Client, b.GetSpec().ClusterResourceOverrideSnapshots, b.GetSpec().ResourceOverrideSnapshots)
	if err != nil {
		return nil, misfit(err)
	}
	if key, ok := objects.KeyOf(b); ok {
		if o := set.Foreign(key); o != nil {
			return nil, misfit(fmt.Errorf("override snapshot %q is for another placement; roll the placement out again", o.Snapshot))
		}
	}
	if err := r.mayDelete(ctx, b, placement, member, set, group, have); err != nil {
		return nil, err
	}
	changed := &snapshot.Group{Index: group.Index, Resources: group.Resources}
	for _, part := range group.Parts {
		before := part.Manifests
		if part.Manifests, err = set.Apply(part.Manifests, override.MemberOf(member)); err == nil {
			err = sameChart(part, before)
		}
		if refusal.Of(err) != nil {
			return nil, err // The rules fit and their result does not: the Work reports it.
		}
		if err != nil {
			return nil, misfit(err)
		}
		if part.Hash, err = snapshot.Hash(part.Manifests); err != nil {
			return nil, err
		}
		changed.Parts = append(changed.Parts, part)
	}
	return changed, nil
}

// hasOverrides reports whether a binding has overrides. Their variables may depend on the member.
func hasOverrides(b placementv1beta1.BindingObject) bool {
	return len(b.GetSpec().ClusterResourceOverrideSnapshots)+len(b.GetSpec().ResourceOverrideSnapshots) > 0
}
