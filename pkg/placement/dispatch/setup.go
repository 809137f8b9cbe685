// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/placement/helmchart"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
)

// Options configures the package. See the fields for what is required.
type Options struct {
	// Client reads through the manager's cache.
	Client client.Client
	// Snapshots reads the snapshots that bindings name.
	Snapshots snapshot.Reader
	Charts    Charts
	// Scopes reports whether a kind of the hub is namespaced.
	Scopes helmchart.Scopes
	// Authors limits what is sent; nil means no limit.
	Authors *Authors
	// Recorder is for events of placements.
	Recorder events.EventRecorder
	// Clock is the clock; nil means the real one.
	Clock clock.PassiveClock
	// Workers is the number of bindings that are reconciled at a time; 0 means 64.
	Workers int
}

// SetupWithManager registers the controller binding.works. The manager's cache should have
// CacheOptions.
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
		Recorder: o.Recorder, Clock: o.Clock, Workers: o.Workers}
	return r.SetupWithManager(mgr)
}
