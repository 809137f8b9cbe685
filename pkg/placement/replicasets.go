// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"fleetgate.io/fleetgate/pkg/placement/ocm/replicaset"
)

// SetupReplicaSets registers the controller of ManifestWorkReplicaSets, which is independent of the
// others. The manager's scheme must include the groups of Open Cluster Management; its cache should
// have replicaset.CacheOptions. Workers is the number of sets that are reconciled at a time. tenancy
// limits the clusters that they deliver to; nil means no limit.
func SetupReplicaSets(ctx context.Context, mgr ctrl.Manager, workers int, tenancy replicaset.Tenancy) error {
	cached, live, err := clients(mgr)
	if err != nil {
		return err
	}
	sets := &replicaset.Reconciler{Client: cached, Live: live, Clock: clock.RealClock{}, Workers: workers, Tenancy: tenancy}
	return sets.SetupWithManager(ctx, mgr)
}
