// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"fleetgate.io/fleetgate/pkg/placement/ocm/scheduler"
)

// SetupDecisions registers the scheduler for Open Cluster Management's Placements, which is independent
// of the other controllers. The manager's scheme must include that group. Workers is the number of
// Placements that are scheduled at a time; metrics may be nil.
func SetupDecisions(mgr ctrl.Manager, clock clock.PassiveClock, workers int, metrics prometheus.Registerer) error {
	cached, live, err := clients(mgr)
	if err != nil {
		return err
	}
	decisions := &scheduler.Reconciler{
		Client: cached, Live: live, Recorder: mgr.GetEventRecorder(scheduler.EventSource), Clock: clock, Workers: workers, Metrics: metrics,
	}
	return decisions.SetupWithManager(mgr)
}
