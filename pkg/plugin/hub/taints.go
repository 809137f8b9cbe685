// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// ChangeTaints writes what change makes of a member's taints, and again if somebody else
// wrote the member meanwhile. What is as it should be is not written.
func (h *Hub) ChangeTaints(ctx context.Context, name string, change func([]clusterv1beta1.Taint) []clusterv1beta1.Taint) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		member, err := h.Member(ctx, name)
		if err != nil {
			return err
		}
		before := member.DeepCopy()
		member.Spec.Taints = change(before.Spec.Taints)
		if equality.Semantic.DeepEqual(before.Spec.Taints, member.Spec.Taints) {
			return nil
		}
		if err := h.Patch(ctx, member, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("changing the taints of member %q: %w", name, err)
		}
		return nil
	})
}
