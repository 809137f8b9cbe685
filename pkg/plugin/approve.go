// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/plugin/hub"
)

func newApproveCommand(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "approve MEMBER...",
		Short: "Let members that wait for it have placements",
		Long: `Approve takes away the taint ` + clusterv1beta1.TaintUnapproved + `, which members have that registered
with a token whose approval is manual. Until then nothing is placed on them.`,
		Example:           "  kubectl fleetgate approve member-1",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: s.completeNames(true, memberNames),
		RunE: s.eachMember(func(ctx context.Context, h *hub.Hub, name string) (string, error) {
			return "approved", h.ChangeTaints(ctx, name, func(taints []clusterv1beta1.Taint) []clusterv1beta1.Taint {
				return withoutTaint(taints, clusterv1beta1.TaintUnapproved, "")
			})
		}),
	}
}

func newRejectCommand(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "reject MEMBER...",
		Short: "Send members away that wait for approval",
		Long: `Reject deletes the MemberCluster of a member that nobody has approved. Its Cluster
stays in the namespace where it registered, and keeps it from joining again until
that is deleted, too. A member that was approved is not rejected: see leave.`,
		Example:           "  kubectl fleetgate reject newcomer",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: s.completeNames(true, memberNames),
		RunE: s.eachMember(func(ctx context.Context, h *hub.Hub, name string) (string, error) {
			return "rejected", reject(ctx, h, name)
		}),
	}
}

func reject(ctx context.Context, h *hub.Hub, name string) error {
	member, err := h.Member(ctx, name)
	if err != nil {
		return err
	}
	if member.IsApproved() {
		return fmt.Errorf("member %q is approved: to take it out of the fleet, run kubectl fleetgate leave %s", name, name)
	}
	// Only what was looked at is deleted: somebody may have approved it meanwhile.
	if err := h.Delete(ctx, member, client.Preconditions{UID: &member.UID, ResourceVersion: &member.ResourceVersion}); err != nil {
		return fmt.Errorf("rejecting member %q: %w", name, err)
	}
	return nil
}
