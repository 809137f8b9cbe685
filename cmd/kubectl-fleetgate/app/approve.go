// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/inspect/overview"
)

func newApproveCommand(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "approve MEMBER...",
		Short: "Approve members that are waiting for approval",
		Long: `Approve members that registered with a token whose approval mode is manual. The command
removes the taint ` + clusterv1beta1.TaintUnapproved + `. Until then nothing is placed on the member.`,
		Example:           "  kubectl fleetgate approve member-1",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: s.completeNames(true, memberNames),
		RunE: s.eachMember(func(ctx context.Context, h *overview.Hub, name string) (string, error) {
			return "approved", h.ChangeTaints(ctx, name, func(taints []clusterv1beta1.Taint) []clusterv1beta1.Taint {
				return withoutTaint(taints, clusterv1beta1.TaintUnapproved, "")
			})
		}),
	}
}

func newRejectCommand(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "reject MEMBER...",
		Short: "Reject members that are waiting for approval",
		Long: `Delete the MemberCluster of a member that is waiting for approval. Its Cluster object
remains in the registration namespace and prevents the cluster from joining again until
you delete that object, too. To remove an approved member, use "leave".`,
		Example:           "  kubectl fleetgate reject newcomer",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: s.completeNames(true, memberNames),
		RunE: s.eachMember(func(ctx context.Context, h *overview.Hub, name string) (string, error) {
			return "rejected", reject(ctx, h, name)
		}),
	}
}

func reject(ctx context.Context, h *overview.Hub, name string) error {
	member, err := h.Member(ctx, name)
	if err != nil {
		return err
	}
	if member.IsApproved() {
		return fmt.Errorf("member %q is already approved; to remove it from the fleet, run kubectl fleetgate leave %s", name, name)
	}
	// The preconditions protect a member that was approved since it was read.
	if err := h.Delete(ctx, member, client.Preconditions{UID: &member.UID, ResourceVersion: &member.ResourceVersion}); err != nil {
		return fmt.Errorf("rejecting member %q: %w", name, err)
	}
	return nil
}
