// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/inspect/overview"
)

func newConfirmCommand(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "confirm PLACEMENT",
		Short: "Confirm that a placement removes many objects from its members",
		Long: `Confirm lets a placement remove the objects that its condition RemovalSuspended names.
They are on the hub and no longer selected, though the placement's selectors did not
change. Only this removal is confirmed: if other objects are missing meanwhile, the
placement waits for another confirmation. PLACEMENT is the name of a
ClusterResourcePlacement, or NAMESPACE/NAME of a ResourcePlacement.`,
		Example:           "  kubectl fleetgate confirm shop",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeNames(false, placementNames),
		RunE: s.onHub(func(ctx context.Context, h *overview.Hub, args []string) error {
			placement, err := h.Placement(ctx, args[0])
			if err != nil {
				return err
			}
			message, token := suspendedRemoval(placement)
			if token == "" {
				return fmt.Errorf("placement %q has no removal that waits for confirmation", args[0])
			}
			if err := h.Annotate(ctx, placement, placementv1beta1.ConfirmRemovalAnnotation, token); err != nil {
				return err
			}
			s.printf("%s\nplacement %s: removal confirmed\n", message, args[0])
			return nil
		}),
	}
}

// suspendedRemoval returns what a placement would remove, and the token that confirms it; empty if
// no removal waits.
func suspendedRemoval(placement placementv1beta1.PlacementObject) (message, token string) {
	c := meta.FindStatusCondition(placement.GetStatus().Conditions, placementv1beta1.ConditionRemovalSuspended)
	if c == nil {
		return "", ""
	}
	_, token, _ = strings.Cut(c.Message, placementv1beta1.ConfirmRemovalAnnotation+"=")
	message, _, _ = strings.Cut(c.Message, ". Members keep")
	return message, token
}
