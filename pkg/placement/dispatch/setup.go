// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/placement/helmchart"
)

// Options are what the package needs to run.
type Options struct {
	// Client reads through the manager's cache.
	Client client.Client
	// Snapshots reads what bindings are bound to.
	Snapshots Snapshots
	// Charts renders charts; nil if there are none.
	Charts Charts
	// Scopes tells whether a kind of the hub lives in namespaces.
	Scopes helmchart.Scopes
	// Authors confines what is sent; nil confines nothing.
	Authors *Authors
	// Clock tells the time; nil is the real one.
	Clock clock.PassiveClock
	// Workers is how many bindings are looked at at a time; 0 means 64.
	Workers int
}

// SetupWithManager registers the controller binding.works. The manager's cache
// should be made with CacheOptions.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if o.Workers == 0 {
		o.Workers = 64
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	r := &Reconciler{Client: o.Client, Live: mgr.GetAPIReader(), Snapshots: o.Snapshots, Charts: o.Charts, Scopes: o.Scopes, Authors: o.Authors,
		Clock: o.Clock, Workers: o.Workers}
	return r.SetupWithManager(mgr)
}
