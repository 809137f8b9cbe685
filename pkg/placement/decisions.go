// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"fleetgate.io/fleetgate/pkg/placement/ocm/scheduler"
)

// SetupDecisions registers the controller that decides for Open Cluster Management's
// Placements, which needs none of the others. The manager's scheme must know that group.
// Workers is how many Placements it decides for at a time; metrics may be nil.
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
