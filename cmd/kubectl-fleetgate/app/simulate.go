// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"fleetgate.io/fleetgate/pkg/inspect/overview"
	"fleetgate.io/fleetgate/pkg/inspect/simulate"
	"fleetgate.io/fleetgate/pkg/placement/scheduler"
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
		Short: "Simulate the scheduling of a placement",
		Long: `Simulate the scheduling decision for a placement on the hub, or for one in a file, with the
hub's current members and bindings. The output lists the selected members, and the reason
for each member that is not selected. Nothing is changed. If a file contains
MemberClusters, they replace those of the hub.`,
		Example: `  kubectl fleetgate simulate shop
  kubectl fleetgate simulate -f placement.yaml -o yaml`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: s.completeNames(false, placementNames),
		RunE:              func(command *cobra.Command, args []string) error { return o.run(command.Context(), args) },
	}
	command.Flags().StringSliceVarP(&o.Files, "filename", "f", nil, "File or directory with placements, or - for standard input.")
	command.Flags().StringVarP(&o.Output, "output", "o", simulate.Table, "Output format: table, yaml or json.")
	command.Flags().BoolVar(&o.PolicyChanged, "policy-changed", false, "Treat existing bindings as decisions of an earlier policy, to show the effect of replacing that policy.")
	return command
}

func (o *simulateOptions) run(ctx context.Context, args []string) error {
	if !slices.Contains(simulate.Formats(), o.Output) {
		return fmt.Errorf("--output %q is not supported: use %s, %s or %s", o.Output, simulate.Table, simulate.YAML, simulate.JSON)
	}
	if len(args) == 0 && len(o.Files) == 0 {
		return fmt.Errorf("no placement selected: set a name, or a file with --filename")
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

// fill reads from the hub what the files do not contain: members, and the bindings of the
// placements.
func fill(ctx context.Context, h *overview.Hub, input *simulate.Input) error {
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
