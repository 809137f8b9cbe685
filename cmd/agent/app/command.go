// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app is the command line of the agent. Configuration file and flags become Options, Options become Config,
// and agent.go wires the parts that Config enables, one line per part.
package app

import (
	"github.com/spf13/cobra"
	logsapi "k8s.io/component-base/logs/api/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"fleetgate.io/fleetgate/cmd/agent/app/options"
	"fleetgate.io/fleetgate/pkg/kube/configfile"
	"fleetgate.io/fleetgate/pkg/telemetry/logs"
	"fleetgate.io/fleetgate/pkg/telemetry/version"
)

// NewCommand returns the agent's command line.
func NewCommand() *cobra.Command {
	given, logging := options.New(), logsapi.NewLoggingConfiguration()
	var recorder *configfile.Recorder
	command := &cobra.Command{
		Use:   "agent",
		Short: "Run the fleetgate agent on a member cluster",
		Long: `The agent runs on a member cluster. It registers the cluster with a hub, applies
the resources that the hub places on it, renews the tokens of
ManagedServiceAccounts, and opens the tunnel through which the hub reaches the
cluster. The cluster needs no open port.`,
		Version:      version.Describe(),
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			logger, err := logs.Apply(logging)
			if err != nil {
				return err
			}
			complete, err := options.Load(given.ConfigFile, recorder)
			if err != nil {
				return err
			}
			if err := complete.Validate(); err != nil {
				return err
			}
			config, err := complete.Config()
			if err != nil {
				return err
			}
			return Run(ctrl.LoggerInto(command.Context(), logger), config)
		},
	}
	given.AddFlags(command.Flags())
	recorder = configfile.Record(command.Flags())
	logsapi.AddFlags(logging, command.Flags())
	sections := options.New().Flags()
	logsapi.AddFlags(logsapi.NewLoggingConfiguration(), sections.FlagSet("logs"))
	configfile.SetUsage(command, sections)
	return command
}
