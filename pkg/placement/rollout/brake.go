// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

// brake is what users have paused.
type brake struct {
	placement bool
	members   map[string]bool
}

func (r *Reconciler) brake(ctx context.Context, placement placementv1beta1.PlacementObject) (brake, error) {
	members, err := objects.PausedMembers(ctx, r.Client)
	return brake{placement: placementv1beta1.Paused(placement), members: members}, err
}

func (b brake) holds(binding placementv1beta1.BindingObject) bool { return b.why(binding) != "" }

// why is the reason why a binding is paused, or "".
func (b brake) why(binding placementv1beta1.BindingObject) string {
	const remedy = "is paused: take annotation " + placementv1beta1.PausedAnnotation + " off it to continue"
	member := binding.GetSpec().TargetCluster
	switch {
	case b.placement:
		return "The placement " + remedy
	case b.members[member]:
		return fmt.Sprintf("Member %q %s", member, remedy)
	}
	return ""
}
