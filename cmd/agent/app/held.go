// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"fleetgate.io/fleetgate/pkg/cluster/agent/heartbeat"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

// newHeldGauge makes the metric of what is held on the member since the hub went back.
func newHeldGauge(registerer prometheus.Registerer) (prometheus.Gauge, error) {
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "fleetgate_agent_held_objects",
		Help: "Number of objects on the member that its restored hub does not know. They are retained until they are placed again or released.",
	})
	if err := registerer.Register(gauge); err != nil {
		return nil, fmt.Errorf("registering the metric of what is held: %w", err)
	}
	return gauge, nil
}

// keeping is what keeps on the member what its hub does not know of since it went back. The
// zero value keeps nothing: this hub counts no epochs for the agent.
type keeping struct {
	holds  *retention.Book
	epochs *retention.Epochs
}

// holds is a book of what is held, told in the metric, and to the hub.
func holds(gauge prometheus.Gauge, told *heartbeat.Held) *retention.Book {
	return retention.NewBook(func(held retention.Sum) {
		gauge.Set(float64(held.Objects))
		told.Set(held)
	})
}
