// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app is the gateway's command: flags become Options, Options become Config,
// and gateway.go wires everything that Config asks for, a line per part.
package app

import (
	"github.com/spf13/cobra"
	logsapi "k8s.io/component-base/logs/api/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"fleetgate.io/fleetgate/cmd/gateway/app/commands"
	"fleetgate.io/fleetgate/cmd/gateway/app/options"
	"fleetgate.io/fleetgate/pkg/logs"
	"fleetgate.io/fleetgate/pkg/version"
)

// NewCommand returns the gateway's command line.
func NewCommand() *cobra.Command {
	given, logging := options.New(), logsapi.NewLoggingConfiguration()
	command := &cobra.Command{
		Use:   "gateway",
		Short: "fleetgate on the hub: admits, places, delivers and proxies",
		Long: `The gateway admits clusters into a fleet, decides what runs where, delivers it,
and lets kubectl, Helm and other clients reach every member through the hub.`,
		Version:      version.Describe(),
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			logger, err := logs.Apply(logging)
			if err != nil {
				return err
			}
			if err := given.Validate(); err != nil {
				return err
			}
			config, err := given.Config()
			if err != nil {
				return err
			}
			return Run(ctrl.LoggerInto(command.Context(), logger), config)
		},
	}
	given.AddFlags(command.Flags())
	logsapi.AddFlags(logging, command.Flags())
	command.AddCommand(commands.All()...)
	return command
}
