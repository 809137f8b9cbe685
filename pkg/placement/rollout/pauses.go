// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

// pauses is what users have paused.
type pauses struct {
	placement bool
	members   map[string]bool
}

func (r *Reconciler) pauses(ctx context.Context, placement placementv1beta1.PlacementObject) (pauses, error) {
	members, err := objects.PausedMembers(ctx, r.Client)
	return pauses{placement: placementv1beta1.Paused(placement), members: members}, err
}

func (p pauses) has(binding placementv1beta1.BindingObject) bool { return p.reason(binding) != "" }

// why is the reason why a binding is paused, or "".
func (p pauses) reason(binding placementv1beta1.BindingObject) string {
	const remedy = "is paused: take annotation " + placementv1beta1.PausedAnnotation + " off it to continue"
	member := binding.GetSpec().TargetCluster
	switch {
	case p.placement:
		return "The placement " + remedy
	case p.members[member]:
		return fmt.Sprintf("Member %q %s", member, remedy)
	}
	return ""
}
