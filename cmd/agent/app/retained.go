// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"fleetgate.io/fleetgate/pkg/cluster/agent/heartbeat"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

// newRetainedGauge registers the metric of objects that the member retains.
func newRetainedGauge(registerer prometheus.Registerer) (prometheus.Gauge, error) {
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "fleetgate_agent_retained_objects",
		Help: "Number of objects on the member that its restored hub does not know. They are retained until they are placed again or released.",
	})
	if err := registerer.Register(gauge); err != nil {
		return nil, fmt.Errorf("registering the metric of retained objects: %w", err)
	}
	return gauge, nil
}

// keeping retains objects on the member that a restored hub does not know. The zero value retains
// nothing: this hub counts no epochs for the agent.
type keeping struct {
	tracker *retention.Tracker
	epochs  *retention.Epochs
}

// newTracker tracks retained objects, and reports them in the metric and to the hub.
func newTracker(gauge prometheus.Gauge, reported *heartbeat.Retained) *retention.Tracker {
	return retention.NewTracker(func(sum retention.Summary) {
		gauge.Set(float64(sum.Objects))
		reported.Set(sum)
	})
}
