// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"context"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// ChangeTaints applies change to the taints of a member and retries on conflict. It does not write
// taints that change leaves as they are.
func (h *Hub) ChangeTaints(ctx context.Context, name string, change func([]clusterv1beta1.Taint) []clusterv1beta1.Taint) error {
	return h.ChangeMember(ctx, name, func(member *clusterv1beta1.MemberCluster) { member.Spec.Taints = change(member.Spec.Taints) })
}
