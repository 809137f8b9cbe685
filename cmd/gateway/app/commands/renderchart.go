// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"github.com/spf13/cobra"

	"fleetgate.io/fleetgate/pkg/placement/helmchart/engine"
)

// RenderChart is the hidden subcommand that the gateway starts to render one chart.
const RenderChart = "render-chart"

// newRenderChartCommand returns a hidden command, for the gateway itself.
func newRenderChartCommand() *cobra.Command {
	return &cobra.Command{
		Use:          RenderChart,
		Short:        "Render the chart on standard input; started by the gateway only",
		Hidden:       true,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			return engine.Serve(command.InOrStdin(), command.OutOrStdout())
		},
	}
}
