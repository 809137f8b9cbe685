// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package commands has the subcommands of the gateway, one file per command with its
// flags. None of them starts a server.
package commands

import "github.com/spf13/cobra"

// All returns a new value of each command.
func All() []*cobra.Command {
	return []*cobra.Command{
		newKubeconfigCommand(), newSimulateCommand(), newPolicyCommand(), newUninstallCommand(), newDiagnoseCommand(), newRenderChartCommand(),
	}
}
