// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"fleetgate.io/fleetgate/cmd/gateway/app/options"
	"fleetgate.io/fleetgate/pkg/placement"
)

// ocmWorkers is how many objects of Open Cluster Management's kinds each controller looks at
// at a time.
const ocmWorkers = 8

// addOCM serves the chosen parts of Open Cluster Management's API, in the leader.
func (g *gateway) addOCM(ctx context.Context, mgr ctrl.Manager) error {
	if !g.Parts.Runs(options.ComponentControllers) || !g.Parts.ServesOCM(options.OCMWorks) {
		return nil
	}
	return placement.SetupReplicaSets(ctx, mgr, ocmWorkers)
}
