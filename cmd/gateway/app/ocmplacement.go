// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"fleetgate.io/fleetgate/cmd/gateway/app/options"
	"fleetgate.io/fleetgate/pkg/placement"
)

// ocmPlacementWorkers is how many Placements are decided at a time: they wait for the hub
// most of the time.
const ocmPlacementWorkers = 16

// addOCMPlacement decides for Open Cluster Management's Placements, in the leader.
func (g *gateway) addOCMPlacement(_ context.Context, mgr ctrl.Manager) error {
	if !g.Parts.Runs(options.ComponentControllers) || !g.Parts.ServesOCM(options.OCMPlacement) {
		return nil
	}
	return placement.SetupDecisions(mgr, clock.RealClock{}, ocmPlacementWorkers)
}
