// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"fleetgate.io/fleetgate/pkg/placement/scheduler"
	"fleetgate.io/fleetgate/pkg/placement/simulate"
	"fleetgate.io/fleetgate/pkg/plugin/hub"
)

type simulateOptions struct {
	*session
	Files         []string
	Output        string
	PolicyChanged bool
}

func newSimulateCommand(s *session) *cobra.Command {
	o := &simulateOptions{session: s}
	command := &cobra.Command{
		Use:   "simulate PLACEMENT | -f FILE",
		Short: "Say which members a placement would get now, and why not the others",
		Long: `Simulate decides as the scheduler would, with the members and bindings that the hub has
now: about a placement that is there, or one from a file that nobody has applied. Nothing
is changed. Files may also hold MemberClusters, which are taken instead of the hub's.`,
		Example: `  kubectl fleetgate simulate shop
  kubectl fleetgate simulate -f placement.yaml -o yaml`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: s.completeNames(false, placementNames),
		RunE:              func(command *cobra.Command, args []string) error { return o.run(command.Context(), args) },
	}
	command.Flags().StringSliceVarP(&o.Files, "filename", "f", nil, "File or folder with placements, or - for standard input.")
	command.Flags().StringVarP(&o.Output, "output", "o", simulate.Table, "How to print: table, yaml or json.")
	command.Flags().BoolVar(&o.PolicyChanged, "policy-changed", false, "Take what is placed for the work of an earlier policy: what would happen if this one replaced it.")
	return command
}

func (o *simulateOptions) run(ctx context.Context, args []string) error {
	if !slices.Contains(simulate.Formats(), o.Output) {
		return fmt.Errorf("--output %q is none of %s, %s and %s", o.Output, simulate.Table, simulate.YAML, simulate.JSON)
	}
	if len(args) == 0 && len(o.Files) == 0 {
		return fmt.Errorf("name a placement, or give a file with --filename")
	}
	h, err := o.hub()
	if err != nil {
		return err
	}
	input := &simulate.Input{}
	if len(o.Files) > 0 {
		if input, err = simulate.ReadFiles(o.Files, o.In); err != nil {
			return err
		}
	}
	for _, name := range args {
		placement, err := h.Placement(ctx, name)
		if err != nil {
			return err
		}
		input.Placements = append(input.Placements, placement)
	}
	if err := fill(ctx, h, input); err != nil {
		return err
	}
	if err := simulate.Check(input); err != nil {
		return err
	}
	results, err := simulate.Run(scheduler.Profile(), input, simulate.Options{Now: o.Clock.Now(), PolicyChanged: o.PolicyChanged})
	if err != nil {
		return err
	}
	return simulate.Write(o.Out, o.Output, results)
}

// fill takes from the hub what the files do not say: members, and the bindings of the
// placements.
func fill(ctx context.Context, h *hub.Hub, input *simulate.Input) error {
	if len(input.Members) == 0 {
		members, err := h.Members(ctx)
		if err != nil {
			return err
		}
		input.Members = members
	}
	for _, placement := range input.Placements {
		bindings, err := h.BindingsOf(ctx, placement)
		if err != nil {
			return err
		}
		input.Bindings = append(input.Bindings, bindings...)
	}
	return nil
}
