// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// ChangeTaints writes what change makes of a member's taints, and again if somebody else
// wrote the member meanwhile. What is as it should be is not written.
func (h *Hub) ChangeTaints(ctx context.Context, name string, change func([]clusterv1beta1.Taint) []clusterv1beta1.Taint) error {
	return h.ChangeMember(ctx, name, func(member *clusterv1beta1.MemberCluster) { member.Spec.Taints = change(member.Spec.Taints) })
}
