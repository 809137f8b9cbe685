// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"fleetgate.io/fleetgate/pkg/telemetry/version"
)

// Exit codes. docs/reference/plugin.md documents them.
const (
	exitDone = 0
	// exitFailed: the command failed, or could not find out.
	exitFailed = 1
	// exitFound: why and diff found problems or differences.
	exitFound = 2
)

// errFound ends a command that has printed the problems it found.
var errFound = errors.New("problems found")

// Run runs a command line, without the program's name, and returns the exit code.
func Run(ctx context.Context, streams genericiooptions.IOStreams, args []string) int {
	command := NewCommand(streams)
	command.SetArgs(args)
	err := command.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errFound):
		return exitFound
	}
	fmt.Fprintln(streams.ErrOut, "error:", err)
	return exitFailed
}

// NewCommand returns the whole plugin.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	s := &session{
		IOStreams: streams, Clock: clock.RealClock{},
		flags: genericclioptions.NewConfigFlags(true).WithDiscoveryBurst(300).WithDiscoveryQPS(50).WithWarningPrinter(streams),
	}
	root := &cobra.Command{
		Use:   "kubectl-fleetgate",
		Short: "Manage a fleet of clusters from its hub",
		Long: `Manage a fleet of clusters from its hub, with one command for each task. The plugin
reads and writes the hub with your kubeconfig and has no permissions of its own.`,
		Version:      version.Describe(),
		Annotations:  map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl fleetgate"},
		SilenceUsage: true, SilenceErrors: true,
		DisableAutoGenTag: true,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	s.flags.AddFlags(root.PersistentFlags())
	for _, group := range s.groups() {
		root.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
		for _, command := range group.commands {
			command.GroupID = group.id
			root.AddCommand(command)
		}
	}
	return root
}

// GroupOfKubectl is the group of kubectl's own commands, which run on members.
const GroupOfKubectl = "kubectl"

// group is a section of the help.
type group struct {
	id, title string
	commands  []*cobra.Command
}

func (s *session) groups() []group {
	return []group{
		{"inspect", "Inspection and Troubleshooting:", []*cobra.Command{
			newMembersCommand(s), newWhyCommand(s), newTreeCommand(s), newDiffCommand(s), newDiagnoseCommand(s), newConsoleCommand(s),
		}},
		{"members", "Member Lifecycle:", []*cobra.Command{
			newJoinCommand(s), newApproveCommand(s), newRejectCommand(s), newCordonCommand(s), newUncordonCommand(s),
			newTaintCommand(s), newDrainCommand(s), newLeaveCommand(s), newMoveCommand(s), newTokenCommand(s),
		}},
		{"access", "Member Access:", []*cobra.Command{
			newUseCommand(s), newKubeconfigCommand(s), newCredentialCommand(s),
		}},
		{GroupOfKubectl, "kubectl Commands on Members:", newReachCommands(s)},
		{"rollout", "Staged Updates, Removal and Simulation:", []*cobra.Command{
			newRunCommand(s), newConfirmCommand(s), newRetainedCommand(s), newSimulateCommand(s),
		}},
	}
}
