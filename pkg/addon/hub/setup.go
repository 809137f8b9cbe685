// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"fleetgate.io/fleetgate/pkg/addon/hub/builtin"
	"fleetgate.io/fleetgate/pkg/addon/hub/configuration"
	"fleetgate.io/fleetgate/pkg/addon/hub/install"
	"fleetgate.io/fleetgate/pkg/addon/hub/objects"
	"fleetgate.io/fleetgate/pkg/addon/hub/progress"
	"fleetgate.io/fleetgate/pkg/kube/crdwait"
)

// Options configure the controllers.
type Options struct {
	Clock clock.PassiveClock
	// Workers is how many objects each controller reconciles at a time.
	Workers int
	// Members knows the ManagedClusters that mirror members. Nil: none of them is shown with the
	// features of its agent.
	Members builtin.Members
}

// SetupWithManager adds all controllers of add-ons. They start once the hub serves the other kinds
// of Open Cluster Management that they read.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if err := objects.AddIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	return mgr.Add(&crdwait.Kinds{
		Manager: mgr, Then: o.start,
		Names: []string{
			"managedclusters.cluster.open-cluster-management.io", "placements.cluster.open-cluster-management.io",
			"placementdecisions.cluster.open-cluster-management.io", "manifestworks.work.open-cluster-management.io",
		},
		Missing: "Add-ons are not reconciled until the hub serves ManagedClusters, Placements and ManifestWorks",
	})
}

func (o Options) start(mgr ctrl.Manager) error {
	hub := mgr.GetClient()
	controllers := []interface{ SetupWithManager(ctrl.Manager) error }{
		&install.Reconciler{Client: hub, Live: mgr.GetAPIReader(), Workers: o.Workers},
		&configuration.Reconciler{Client: hub, Clock: o.Clock, Workers: o.Workers},
		&progress.Reconciler{Client: hub, Workers: o.Workers},
	}
	if o.Members != nil {
		controllers = append(controllers, &builtin.Reconciler{Client: hub, Members: o.Members, Workers: o.Workers})
	}
	for _, add := range controllers {
		if err := add.SetupWithManager(mgr); err != nil {
			return err
		}
	}
	return nil
}
