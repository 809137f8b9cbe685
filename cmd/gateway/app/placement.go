// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"os"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"fleetgate.io/fleetgate/charts"
	"fleetgate.io/fleetgate/cmd/gateway/app/commands"
	"fleetgate.io/fleetgate/cmd/gateway/app/options"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/clusterset"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/membermirror"
	"fleetgate.io/fleetgate/pkg/placement"
	"fleetgate.io/fleetgate/pkg/placement/helmchart"
	"fleetgate.io/fleetgate/pkg/placement/helmchart/oci"
	"fleetgate.io/fleetgate/pkg/placement/scheduler"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
)

// addPlacement schedules placements, rolls them out and creates their Works.
func (g *gateway) addPlacement(ctx context.Context, mgr ctrl.Manager) error {
	if !g.Features.Runs(options.ComponentControllers) || !g.Features.Serves(options.APIFleet) {
		return nil
	}
	charts, err := g.charts()
	if err != nil {
		return err
	}
	filter, err := g.Placement.Filter()
	if err != nil {
		return err
	}
	return placement.SetupWithManager(ctx, mgr, placement.Options{
		Filter:             filter,
		Tenancy:            g.tenancy(mgr),
		Marks:              g.marks(),
		ConfigMapEnvelopes: g.Placement.ConfigMapEnvelopes, Charts: charts, ChartPackages: g.chartPackages(), CheckAuthors: !g.Placement.TrustsAuthors(),
		SnapshotIntervals: snapshot.Intervals{Least: g.Placement.SnapshotMinimumInterval.Duration, Collection: g.Placement.ChangesCollectionDuration.Duration},
		Silence:           g.Members.UnhealthyThreshold.Duration,
		Order:             &g.order,
		Metrics:           metrics.Registry,
	})
}

// tenancy limits the clusters of ResourcePlacements. It is nil without a limit.
func (g *gateway) tenancy(mgr ctrl.Manager) scheduler.Tenancy {
	if !g.Placement.LimitsTenants() {
		return nil
	}
	return clusterset.Tenancy{Reader: mgr.GetClient(), Counts: membermirror.Members{Hub: mgr.GetClient()}.HasAgent}
}

// marks returns the taints and labels that users set on members' ManagedClusters, and is nil if
// there are none.
func (g *gateway) marks() scheduler.Marks {
	if !g.Features.ServesOCM(options.OCMRegistration) {
		return nil
	}
	return membermirror.Marks
}

// chartPackages pulls charts from registries. It is nil if no registry is allowed.
func (g *gateway) chartPackages() helmchart.Packages {
	if len(g.Placement.HelmChartRegistries) == 0 {
		return nil
	}
	return oci.NewRegistries(g.Placement.HelmChartRegistries, g.Placement.HelmChartCredentialsFile, clock.RealClock{})
}

// charts renders placed Helm charts. It is nil if the feature is disabled.
func (g *gateway) charts() (helmchart.Engine, error) {
	if !g.Placement.HelmCharts {
		return nil, nil
	}
	return chartEngine()
}

// chartEngine renders charts in separate processes.
func chartEngine() (helmchart.Engine, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the gateway's own program, which renders charts: %w", err)
	}
	return &helmchart.Process{Path: self, Args: []string{commands.RenderChart}}, nil
}

// agentChart is the chart that the gateway installs on imported clusters.
func agentChart() (*helmchart.Bundled, error) {
	engine, err := chartEngine()
	if err != nil {
		return nil, err
	}
	packed, err := charts.Agent()
	if err != nil {
		return nil, err
	}
	return &helmchart.Bundled{Engine: engine, Package: packed}, nil
}
