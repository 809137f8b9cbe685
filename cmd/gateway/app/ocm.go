// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"fleetgate.io/fleetgate/cmd/gateway/app/options"
	"fleetgate.io/fleetgate/pkg/placement"
	"fleetgate.io/fleetgate/pkg/work/expiry"
)

// ocmWorkers is how many objects of Open Cluster Management's kinds each controller looks at
// at a time.
const ocmWorkers = 8

// addOCM serves the chosen parts of Open Cluster Management's API, in the leader.
func (g *gateway) addOCM(ctx context.Context, mgr ctrl.Manager) error {
	if !g.Parts.Runs(options.ComponentControllers) || !g.Parts.ServesOCM(options.OCMWorks) {
		return nil
	}
	if err := placement.SetupReplicaSets(ctx, mgr, ocmWorkers); err != nil {
		return err
	}
	return setUp(mgr, []controller{&expiry.Reconciler{Client: mgr.GetClient(), Clock: clock.RealClock{}, Workers: ocmWorkers}})
}
