// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// scheduling is the value of label name, which dashboards of Open Cluster Management select.
const scheduling = "placement_scheduling"

// metrics say how long deciding takes, under the names that they have there.
type metrics struct{ decided, bound prometheus.Observer }

// newMetrics registers metrics; nil means that nobody reads them. Those of an earlier time as
// the leader go on.
func newMetrics(in prometheus.Registerer) (*metrics, error) {
	buckets := prometheus.ExponentialBuckets(1e-6, 10, 10)
	decided := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "scheduling_scheduling_duration_seconds", Help: "How long it takes to decide for a Placement, without what is written.", Buckets: buckets,
	}, []string{"name"})
	bound := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "scheduling_bind_duration_seconds", Help: "How long it takes to write the decisions of a Placement and its status.", Buckets: buckets,
	}, []string{"name"})
	for _, of := range []**prometheus.HistogramVec{&decided, &bound} {
		if in == nil {
			continue
		}
		known := prometheus.AlreadyRegisteredError{}
		switch err := in.Register(*of); {
		case errors.As(err, &known):
			*of, _ = known.ExistingCollector.(*prometheus.HistogramVec)
		case err != nil:
			return nil, fmt.Errorf("registering metrics of %s: %w", Name, err)
		}
	}
	return &metrics{decided: decided.WithLabelValues(scheduling), bound: bound.WithLabelValues(scheduling)}, nil
}
