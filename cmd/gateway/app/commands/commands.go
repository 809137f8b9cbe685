// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package commands is what the gateway's program does besides being a gateway: a file for
// each command, with its flags. None of them serves anything.
package commands

import "github.com/spf13/cobra"

// All returns a new value of each command.
func All() []*cobra.Command {
	return []*cobra.Command{
		newKubeconfigCommand(), newSimulateCommand(), newPolicyCommand(), newUninstallCommand(), newDiagnoseCommand(), newRenderChartCommand(),
	}
}
