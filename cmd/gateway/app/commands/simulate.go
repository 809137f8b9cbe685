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

	"fleetgate.io/fleetgate/pkg/placement/scheduler"
	"fleetgate.io/fleetgate/pkg/placement/simulate"
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
	flags.StringSliceVarP(&o.Files, "filename", "f", o.Files, "File or folder with placements, clusters and bindings, or - for standard input. Of a folder all .yaml, .yml and .json files are read.")
	flags.StringVarP(&o.Output, "output", "o", simulate.Table, "How to write the decision: table, yaml or json.")
	flags.StringVar(&o.At, "at", o.At, "Time for which is decided, like 2026-01-31T12:00:00Z. Empty: the latest heartbeat, or change of a ManagedCluster, in the files.")
	flags.BoolVar(&o.PolicyChanged, "policy-changed", o.PolicyChanged, "Take bindings for those of an earlier policy: what would happen if this one replaced it.")
}

func newSimulateCommand() *cobra.Command {
	options := &simulateOptions{}
	command := &cobra.Command{
		Use:   "simulate -f placement.yaml -f clusters/",
		Short: "Say from files which clusters a placement would get, and why not the others",
		Long: `simulate decides about placements as the scheduler would, from files alone:
no cluster is asked and nothing is changed. The files are what kubectl writes:

  kubectl get memberclusters -o yaml > clusters.yaml
  kubectl get clusterresourcebindings -o yaml > bindings.yaml
  gateway simulate -f placement.yaml -f clusters.yaml -f bindings.yaml

MemberClusters without a status count as joined and healthy. Without bindings
nothing counts as placed yet.

Placements of Open Cluster Management are decided from ManagedClusters,
ManagedClusterSets, ManagedClusterSetBindings, AddOnPlacementScores and
PlacementDecisions in the files.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return options.run(command.InOrStdin(), command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	options.AddFlags(command.Flags())
	return command
}

// run reads, decides and writes; what was left out goes to notes.
func (o *simulateOptions) run(stdin io.Reader, out, notes io.Writer) error {
	if !slices.Contains(simulate.Formats(), o.Output) {
		return fmt.Errorf("--output %q is none of %s, %s and %s", o.Output, simulate.Table, simulate.YAML, simulate.JSON)
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
		if _, err := fmt.Fprintf(notes, "Leaving out %d of kind %s\n", n, kind); err != nil {
			return err
		}
	}
	results, err := simulate.Run(scheduler.Profile(), input, simulate.Options{Now: now, PolicyChanged: o.PolicyChanged})
	if err != nil {
		return err
	}
	return simulate.Write(out, o.Output, results)
}
