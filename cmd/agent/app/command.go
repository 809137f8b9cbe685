// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app is the agent's command: flags become Options, Options become Config,
// and agent.go wires everything that Config asks for, a line per part.
package app

import (
	"github.com/spf13/cobra"
	logsapi "k8s.io/component-base/logs/api/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"fleetgate.io/fleetgate/pkg/logs"
	"fleetgate.io/fleetgate/pkg/version"
)

// NewCommand returns the agent's command line.
func NewCommand() *cobra.Command {
	options, logging := NewOptions(), logsapi.NewLoggingConfiguration()
	command := &cobra.Command{
		Use:   "agent",
		Short: "fleetgate on a member: registers, applies works, opens the tunnel",
		Long: `The agent registers its cluster with a hub, applies what the hub places on it,
keeps the tokens of managed service accounts fresh, and opens the tunnel through
which the hub reaches this cluster. Nothing listens for the hub.`,
		Version:      version.Describe(),
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			logger, err := logs.Apply(logging)
			if err != nil {
				return err
			}
			if err := options.Validate(); err != nil {
				return err
			}
			config, err := options.Config()
			if err != nil {
				return err
			}
			return Run(ctrl.LoggerInto(command.Context(), logger), config)
		},
	}
	options.AddFlags(command.Flags())
	logsapi.AddFlags(logging, command.Flags())
	return command
}
