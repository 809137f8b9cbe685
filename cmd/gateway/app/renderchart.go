// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"fleetgate.io/fleetgate/pkg/placement/helmchart"
	"fleetgate.io/fleetgate/pkg/placement/helmchart/engine"
	"fleetgate.io/fleetgate/pkg/placement/helmchart/oci"
)

// renderChartCommand is how the gateway starts itself to render one chart.
const renderChartCommand = "render-chart"

// newRenderChartCommand is for the gateway itself: it is not shown.
func newRenderChartCommand() *cobra.Command {
	return &cobra.Command{
		Use:          renderChartCommand,
		Short:        "Render the chart on standard input, as the gateway asks for it",
		Hidden:       true,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			return engine.Serve(command.InOrStdin(), command.OutOrStdout())
		},
	}
}

// chartPackages fetches charts from registries, nil if nobody allowed any.
func (g *gateway) chartPackages() helmchart.Packages {
	if len(g.HelmChartRegistries) == 0 {
		return nil
	}
	return oci.NewRegistries(g.HelmChartRegistries, g.HelmChartCredentials, clock.RealClock{})
}

// charts is what renders Helm charts, nil if nobody asked for it.
func (g *gateway) charts() (helmchart.Engine, error) {
	if !g.HelmCharts {
		return nil, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("--helm-charts: finding the gateway's own program, which renders them: %w", err)
	}
	return &helmchart.Process{Path: self, Args: []string{renderChartCommand}}, nil
}
