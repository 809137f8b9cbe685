// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/inspect/overview"
	"fleetgate.io/fleetgate/pkg/inspect/tree"
)

// maxDetailed is for how many members the Works are read. Members that are not ready come first;
// each further member is one line.
const maxDetailed = 20

type treeOptions struct {
	*session
	Member string
	Output string
	// NotReady leaves out what is ready.
	NotReady bool
}

func newTreeCommand(s *session) *cobra.Command {
	o := &treeOptions{session: s}
	command := &cobra.Command{
		Use:   "tree PLACEMENT",
		Short: "Show a placement as a tree of members, Works and resources",
		Long: `Show a placement as a tree of its members, Works and resources with the state of each. The
tree expands at most 20 members, those that are not ready first. To expand a specific
member, use --member.`,
		Example: `  kubectl fleetgate tree shop
  kubectl fleetgate tree shop --not-ready
  kubectl fleetgate tree shop --member member-1
  kubectl fleetgate tree shop -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeNames(false, placementNames),
		RunE: func(command *cobra.Command, args []string) error {
			return s.patiently(command.Context(), func(ctx context.Context) error { return o.run(ctx, args[0]) })
		},
	}
	s.memberFlag(command, &o.Member, "Show only this member.")
	outputFlag(command, &o.Output, "prints a tree", outputJSON, outputYAML)
	command.Flags().BoolVar(&o.NotReady, "not-ready", false, "Show only members, Works and resources that are not ready.")
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
	root := tree.Of(overview.NameOf(placement), placement, bindings, nil)
	works, err := h.WorksOfMembers(ctx, placement, root.First(maxDetailed))
	if err != nil {
		return err
	}
	root = tree.Of(overview.NameOf(placement), placement, bindings, works)
	if o.NotReady {
		root = root.NotReady()
	}
	if o.Output != "" {
		return o.writeAs(o.Output, root)
	}
	return root.Draw(o.Out)
}
