// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"fleetgate.io/fleetgate/cmd/gateway/app/options"
	"fleetgate.io/fleetgate/pkg/placement"
)

// addStandardDecisions publishes the decisions of placements for consumers of ClusterProfiles, in
// the leader.
func (g *gateway) addStandardDecisions(ctx context.Context, mgr ctrl.Manager) error {
	if !g.Features.Runs(options.ComponentControllers) || !g.Features.Serves(options.APIProfile) {
		return nil
	}
	return placement.SetupStandardDecisions(ctx, mgr, placement.StandardOptions{
		Fleet: g.Features.Serves(options.APIFleet), All: g.Placement.StandardDecisions, OCM: g.Features.ServesOCM(options.OCMPlacement),
		Namespace: g.Hub.Namespace, Manager: g.Members.ClusterProfileManager, Workers: ocmWorkers,
	})
}
