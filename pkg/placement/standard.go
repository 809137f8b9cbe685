// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"fleetgate.io/fleetgate/pkg/placement/standard"
)

// StandardOptions configure which decisions are published as PlacementDecisions of
// multicluster.x-k8s.io.
type StandardOptions struct {
	// Fleet publishes ClusterResourcePlacements and ResourcePlacements that request it; All includes
	// those without a request. SetupWithManager must have been called for the same manager.
	Fleet, All bool
	// OCM publishes Open Cluster Management's Placements.
	OCM bool
	// Namespace is the namespace of ClusterProfiles, Manager the name of their cluster manager; if
	// unset, ours.
	Namespace, Manager string
	// Workers is the number of placements that each controller reconciles at a time.
	Workers int
}

// SetupStandardDecisions registers the controllers that publish decisions. The manager's scheme must
// include multicluster.x-k8s.io and the groups of the chosen placements.
func SetupStandardDecisions(ctx context.Context, mgr ctrl.Manager, o StandardOptions) error {
	cached, _, err := clients(mgr)
	if err != nil {
		return err
	}
	if err := standard.AddIndexes(ctx, mgr.GetFieldIndexer(), o.OCM); err != nil {
		return err
	}
	options := standard.Options{Client: cached, Recorder: mgr.GetEventRecorder(standard.EventSource), Namespace: o.Namespace, Manager: o.Manager, Workers: o.Workers}
	if o.Fleet {
		if err := standard.NewFleet(options, o.All).SetupWithManager(mgr); err != nil {
			return err
		}
	}
	if o.OCM {
		return standard.NewOCM(options).SetupWithManager(mgr)
	}
	return nil
}
