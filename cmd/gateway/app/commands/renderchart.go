// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"github.com/spf13/cobra"

	"fleetgate.io/fleetgate/pkg/placement/helmchart/engine"
)

// RenderChart is how the gateway starts itself to render one chart.
const RenderChart = "render-chart"

// newRenderChartCommand is for the gateway itself: it is not shown.
func newRenderChartCommand() *cobra.Command {
	return &cobra.Command{
		Use:          RenderChart,
		Short:        "Render the chart on standard input, as the gateway asks for it",
		Hidden:       true,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			return engine.Serve(command.InOrStdin(), command.OutOrStdout())
		},
	}
}
