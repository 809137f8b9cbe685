// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app is the gateway's command: flags become Options, Options become Config,
// and gateway.go wires everything that Config asks for, a line per part.
package app

import (
	"github.com/spf13/cobra"
	logsapi "k8s.io/component-base/logs/api/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"fleetgate.io/fleetgate/pkg/logs"
	"fleetgate.io/fleetgate/pkg/version"
)

// NewCommand returns the gateway's command line.
func NewCommand() *cobra.Command {
	options, logging := NewOptions(), logsapi.NewLoggingConfiguration()
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
	command.AddCommand(newKubeconfigCommand())
	command.AddCommand(newSimulateCommand())
	command.AddCommand(newPolicyCommand())
	command.AddCommand(newUninstallCommand())
	command.AddCommand(newDiagnoseCommand())
	command.AddCommand(newRenderChartCommand())
	return command
}

// newUninstallCommand returns the way out when no gateway answers any more.
func newUninstallCommand() *cobra.Command {
	options := NewUninstallOptions()
	command := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove from the hub what leads to a gateway",
		Long: `Uninstall removes what gateways with --install have written to lead the hub's
API server to them: webhook configurations, APIServices and admission policies. It
needs no gateway and runs from anywhere with the rights to do so. Stop every gateway
before, or name their Deployment. CustomResourceDefinitions, and all that is stored in them, stay.`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			return Uninstall(command.Context(), options, command.OutOrStdout())
		},
	}
	options.AddFlags(command.Flags())
	return command
}
