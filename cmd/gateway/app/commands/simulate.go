// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/scheduler"
	"fleetgate.io/fleetgate/pkg/placement/simulate"
	"fleetgate.io/fleetgate/pkg/webhook/rules"
)

// maxSimulatedBytes is how large the files of a simulation may be together;
// 10,000 members are about 30 MB.
const maxSimulatedBytes = 256 << 20

const (
	outputTable = "table"
	outputYAML  = "yaml"
	outputJSON  = "json"
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
	flags.StringVarP(&o.Output, "output", "o", outputTable, "How to write the decision: table, yaml or json.")
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
	if !slices.Contains([]string{outputTable, outputYAML, outputJSON}, o.Output) {
		return fmt.Errorf("--output %q is none of %s, %s and %s", o.Output, outputTable, outputYAML, outputJSON)
	}
	input, err := o.read(stdin)
	if err != nil {
		return err
	}
	if err := check(input); err != nil {
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
	return o.write(out, results)
}

func (o *simulateOptions) read(stdin io.Reader) (*simulate.Input, error) {
	if len(o.Files) == 0 {
		return nil, errors.New("nothing to simulate: name files or folders with --filename")
	}
	paths, err := expand(o.Files)
	if err != nil {
		return nil, err
	}
	input, left := &simulate.Input{}, &io.LimitedReader{N: maxSimulatedBytes + 1}
	for _, path := range paths {
		if err := parse(input, path, stdin, left); err != nil {
			return nil, err
		}
	}
	return input, nil
}

// parse adds one file as far as the limit, which is that of all files, goes.
func parse(input *simulate.Input, path string, stdin io.Reader, left *io.LimitedReader) error {
	left.R = stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("reading --filename: %w", err)
		}
		defer func() { _ = file.Close() }() // It was only read.
		left.R = file
	}
	err := input.Parse(path, left)
	if left.N <= 0 {
		return fmt.Errorf("reading %s: the files have more than %d MiB together", path, maxSimulatedBytes>>20)
	}
	return err
}

// expand replaces folders by the manifests in and below them.
func expand(names []string) ([]string, error) {
	var paths []string
	for _, name := range names {
		if name == "-" {
			paths = append(paths, name)
			continue
		}
		found := 0
		err := filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if path == name && !entry.IsDir() || entry.Type().IsRegular() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
				found++
				paths = append(paths, path)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("reading --filename: %w", err)
		}
		if found == 0 {
			return nil, fmt.Errorf("reading --filename: no .yaml, .yml or .json file is in %s", name)
		}
	}
	return paths, nil
}

// check applies the hub's defaults and rules, so that a placement which the hub
// would refuse is not simulated.
func check(input *simulate.Input) error {
	if len(input.Placements) == 0 && len(input.Chosen) == 0 {
		return errors.New("the files have no ClusterResourcePlacement, no ResourcePlacement and no Placement")
	}
	if len(input.Chosen) > 0 && len(input.World.Clusters) == 0 {
		return errors.New("the files have no ManagedCluster: write them with kubectl get managedclusters -o yaml")
	}
	if len(input.Placements) > 0 && len(input.Members) == 0 {
		return errors.New("the files have no MemberCluster: write them with kubectl get memberclusters -o yaml")
	}
	for _, placement := range input.Placements {
		_, clusterScoped := placement.(*placementv1beta1.ClusterResourcePlacement)
		rules.DefaultPlacement(placement.GetSpec())
		// Which kinds there are only a hub knows.
		scopes := func(schema.GroupVersionKind) (bool, error) { return !clusterScoped, nil }
		meta := metav1.ObjectMeta{Name: placement.GetName(), Namespace: placement.GetNamespace()}
		if faults := rules.ValidatePlacement(&meta, placement.GetSpec(), clusterScoped, scopes); len(faults) > 0 {
			return fmt.Errorf("placement %q is invalid: %w", placement.GetName(), faults.ToAggregate())
		}
	}
	return nil
}

func (o *simulateOptions) write(out io.Writer, results []simulate.Result) error {
	if o.Output == outputTable {
		return simulate.Print(out, results)
	}
	text, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the decision: %w", err)
	}
	if o.Output == outputYAML {
		if text, err = yaml.JSONToYAML(text); err != nil {
			return fmt.Errorf("writing the decision: %w", err)
		}
	}
	_, err = fmt.Fprintln(out, strings.TrimSuffix(string(text), "\n"))
	return err
}
