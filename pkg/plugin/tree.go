// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/plugin/hub"
	"fleetgate.io/fleetgate/pkg/plugin/tree"
)

// maxDetailed is of how many members the Works are read: of a large placement those that
// are not well come first, and the others are a line each.
const maxDetailed = 20

type treeOptions struct {
	*session
	Member string
	Output string
	Unwell bool
}

func newTreeCommand(s *session) *cobra.Command {
	o := &treeOptions{session: s}
	command := &cobra.Command{
		Use:   "tree PLACEMENT",
		Short: "Draw a placement with its members, Works and objects",
		Long: `Tree draws what a placement consists of, and how each part is. The Works of at most 20
members are opened, those that are not well first; --member opens one for certain.`,
		Example: `  kubectl fleetgate tree shop
  kubectl fleetgate tree shop --unwell
  kubectl fleetgate tree shop --member member-1
  kubectl fleetgate tree shop -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeNames(false, placementNames),
		RunE: func(command *cobra.Command, args []string) error {
			return s.patiently(command.Context(), func(ctx context.Context) error { return o.run(ctx, args[0]) })
		},
	}
	s.memberFlag(command, &o.Member, "Only this member.")
	outputFlag(command, &o.Output, "a tree", outputJSON, outputYAML)
	command.Flags().BoolVar(&o.Unwell, "unwell", false, "Only what is not well.")
	return command
}

func (o *treeOptions) run(ctx context.Context, name string) error {
	if err := checkOutput(o.Output, outputJSON, outputYAML); err != nil {
		return err
	}
	h, err := o.hub()
	if err != nil {
		return err
	}
	placement, bindings, err := h.Bound(ctx, name)
	if err != nil {
		return err
	}
	if o.Member != "" {
		if _, err := h.Member(ctx, o.Member); err != nil {
			return err
		}
		bindings = slices.DeleteFunc(bindings, func(b placementv1beta1.BindingObject) bool { return b.GetSpec().TargetCluster != o.Member })
	}
	root := tree.Of(hub.NameOf(placement), placement, bindings, nil)
	works, err := h.WorksOfMembers(ctx, placement, root.First(maxDetailed))
	if err != nil {
		return err
	}
	root = tree.Of(hub.NameOf(placement), placement, bindings, works)
	if o.Unwell {
		root = root.Unwell()
	}
	if o.Output != "" {
		return o.writeAs(o.Output, root)
	}
	return root.Draw(o.Out)
}
