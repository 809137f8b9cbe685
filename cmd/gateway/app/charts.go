// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"os"

	"k8s.io/utils/clock"

	"fleetgate.io/fleetgate/cmd/gateway/app/commands"
	"fleetgate.io/fleetgate/pkg/placement/helmchart"
	"fleetgate.io/fleetgate/pkg/placement/helmchart/oci"
)

// chartPackages fetches charts from registries, nil if nobody allowed any.
func (g *gateway) chartPackages() helmchart.Packages {
	if len(g.Placement.HelmChartRegistries) == 0 {
		return nil
	}
	return oci.NewRegistries(g.Placement.HelmChartRegistries, g.Placement.HelmChartCredentials, clock.RealClock{})
}

// charts is what renders Helm charts, nil if nobody asked for it.
func (g *gateway) charts() (helmchart.Engine, error) {
	if !g.Placement.HelmCharts {
		return nil, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("--helm-charts: finding the gateway's own program, which renders them: %w", err)
	}
	return &helmchart.Process{Path: self, Args: []string{commands.RenderChart}}, nil
}
