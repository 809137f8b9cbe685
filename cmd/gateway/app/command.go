// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app is the command line of the gateway. Configuration file and flags become Options, Options become Config,
// and gateway.go wires the parts that Config enables, one line per part.
package app

import (
	"github.com/spf13/cobra"
	logsapi "k8s.io/component-base/logs/api/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"fleetgate.io/fleetgate/cmd/gateway/app/commands"
	"fleetgate.io/fleetgate/cmd/gateway/app/options"
	"fleetgate.io/fleetgate/pkg/kube/configfile"
	"fleetgate.io/fleetgate/pkg/telemetry/logs"
	"fleetgate.io/fleetgate/pkg/telemetry/version"
)

// NewCommand returns the gateway's command line.
func NewCommand() *cobra.Command {
	given, logging := options.New(), logsapi.NewLoggingConfiguration()
	var recorder *configfile.Recorder
	command := &cobra.Command{
		Use:   "gateway",
		Short: "Run the fleetgate gateway on the hub",
		Long: `The gateway runs on the hub of a fleet. It registers member clusters, schedules
placements, delivers resources to members, and proxies kubectl, Helm and other
clients to the API server of every member.`,
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
	command.AddCommand(commands.All()...)
	return command
}
