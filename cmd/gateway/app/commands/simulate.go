// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fleetgate.io/fleetgate/pkg/inspect/simulate"
	"fleetgate.io/fleetgate/pkg/placement/scheduler"
)

// simulateOptions are the flags of gateway simulate.
type simulateOptions struct {
	Files         []string
	Output        string
	At            string
	PolicyChanged bool
}

// AddFlags binds the options to a command line.
func (o *simulateOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringSliceVarP(&o.Files, "filename", "f", o.Files, "File or directory with placements, clusters and bindings, or - for standard input. In a directory, all .yaml, .yml and .json files are read.")
	flags.StringVarP(&o.Output, "output", "o", simulate.Table, "Output format: table, yaml or json.")
	flags.StringVar(&o.At, "at", o.At, "Time of the decision, such as 2026-01-31T12:00:00Z. If unset, the latest heartbeat, or the latest change of a ManagedCluster, in the files.")
	flags.BoolVar(&o.PolicyChanged, "policy-changed", o.PolicyChanged, "Treat the bindings as results of an earlier policy, and show what happens if this policy replaces it.")
}

func newSimulateCommand() *cobra.Command {
	options := &simulateOptions{}
	command := &cobra.Command{
		Use:   "simulate -f placement.yaml -f clusters/",
		Short: "Show from files which clusters a placement selects, and the reason for each rejected cluster",
		Long: `Run the scheduler's decision for placements on files. No cluster is contacted
and nothing is changed. Create the files with kubectl:

  kubectl get memberclusters -o yaml > clusters.yaml
  kubectl get clusterresourcebindings -o yaml > bindings.yaml
  gateway simulate -f placement.yaml -f clusters.yaml -f bindings.yaml

MemberClusters without a status are treated as joined and healthy. Without
bindings, the placement is treated as new.

For Placements of Open Cluster Management, the command reads ManagedClusters,
ManagedClusterSets, ManagedClusterSetBindings, AddOnPlacementScores and
PlacementDecisions from the files.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return options.run(command.InOrStdin(), command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	options.AddFlags(command.Flags())
	return command
}

// run reads the files and writes the decisions. Ignored kinds are reported to notes.
func (o *simulateOptions) run(stdin io.Reader, out, notes io.Writer) error {
	if !slices.Contains(simulate.Formats(), o.Output) {
		return fmt.Errorf("--output %q is not one of %s, %s and %s", o.Output, simulate.Table, simulate.YAML, simulate.JSON)
	}
	input, err := simulate.ReadFiles(o.Files, stdin)
	if err != nil {
		return err
	}
	if err := simulate.Check(input); err != nil {
		return err
	}
	now := input.Moment()
	if o.At != "" {
		if now, err = time.Parse(time.RFC3339, o.At); err != nil {
			return fmt.Errorf("--at %q is not a time like 2026-01-31T12:00:00Z", o.At)
		}
	}
	for kind, n := range input.Ignored {
		if _, err := fmt.Fprintf(notes, "Ignored %d objects of kind %s\n", n, kind); err != nil {
			return err
		}
	}
	results, err := simulate.Run(scheduler.Profile(), input, simulate.Options{Now: now, PolicyChanged: o.PolicyChanged})
	if err != nil {
		return err
	}
	return simulate.Write(out, o.Output, results)
}
