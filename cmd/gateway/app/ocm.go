// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"fleetgate.io/fleetgate/cmd/gateway/app/options"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/clusterset"
	"fleetgate.io/fleetgate/pkg/placement"
	"fleetgate.io/fleetgate/pkg/work/hub/ttl"
)

// ocmWorkers is the number of concurrent reconciles of each controller for Open Cluster
// Management's kinds.
const ocmWorkers = 8

// addOCM serves the chosen parts of Open Cluster Management's API, in the leader.
func (g *gateway) addOCM(ctx context.Context, mgr ctrl.Manager) error {
	if !g.Features.Runs(options.ComponentControllers) || !g.Features.ServesOCM(options.OCMWorks) {
		return nil
	}
	tenancy := clusterset.Tenancy{Reader: mgr.GetClient(), Counts: everyCluster}
	if err := placement.SetupReplicaSets(ctx, mgr, ocmWorkers, tenancy); err != nil {
		return err
	}
	return setUp(mgr, []controller{&ttl.Reconciler{Client: mgr.GetClient(), Clock: clock.RealClock{}, Workers: ocmWorkers}})
}

// everyCluster counts each ManagedCluster, like Placements do: a set also delivers to clusters of
// Open Cluster Management.
func everyCluster(context.Context, *clusterv1.ManagedCluster) (bool, error) { return true, nil }
