// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
)

// scheduling is the value of label name, which upstream's dashboards select.
const scheduling = "placement_scheduling"

// The values of label plugin_type.
const (
	filters     = "filter"
	prioritizes = "prioritizer"
)

// metrics measure decisions, under upstream's names.
type metrics struct {
	decided, bound, expressed prometheus.Observer
	// plugins have labels name, plugin_type and plugin_name.
	plugins *prometheus.HistogramVec
}

// newMetrics registers metrics; nil registers none. After a second election, those of the first are
// reused.
func newMetrics(in prometheus.Registerer) (*metrics, error) {
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(1e-6, 10, 10)}, append([]string{"name"}, labels...))
	}
	decided := histogram("scheduling_scheduling_duration_seconds", "Seconds to decide a Placement, without writes.")
	bound := histogram("scheduling_bind_duration_seconds", "Seconds to write the decisions and the status of a Placement.")
	plugins := histogram("scheduling_plugin_duration_seconds", "Seconds that a filter or score plugin takes for all clusters of a Placement.", "plugin_type", "plugin_name")
	expressed := histogram("scheduling_cel_runtime_duration_seconds", "Seconds to evaluate the CEL expressions of a Placement for all clusters.")
	for _, of := range []**prometheus.HistogramVec{&decided, &bound, &plugins, &expressed} {
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
	return &metrics{
		decided: decided.WithLabelValues(scheduling), bound: bound.WithLabelValues(scheduling), expressed: expressed.WithLabelValues(scheduling), plugins: plugins,
	}, nil
}

// stopwatch measures one decision at a time. A nil one measures nothing.
type stopwatch struct {
	clock   clock.PassiveClock
	metrics *metrics
	last    time.Time
	// evaluated is true if there are expressions, and how long they took.
	evaluated   bool
	expressions time.Duration
}

// begin starts it, and returns the function to call when a plugin has finished.
func (s *stopwatch) begin() func(plugin string, scores bool) {
	if s == nil {
		return nil
	}
	s.last, s.evaluated, s.expressions = s.clock.Now(), false, 0
	return func(plugin string, scores bool) {
		kind := filters
		if scores {
			kind = prioritizes
		}
		// Names of add-on scores are left out, because users choose them.
		plugin, _, _ = strings.Cut(plugin, "/")
		now := s.clock.Now()
		s.metrics.plugins.WithLabelValues(scheduling, kind, plugin).Observe(now.Sub(s.last).Seconds())
		s.last = now
	}
}

// expression is called before an expression is evaluated, and its result afterwards.
func (s *stopwatch) expression() func() {
	if s == nil {
		return func() {}
	}
	began := s.clock.Now()
	return func() { s.evaluated, s.expressions = true, s.expressions+s.clock.Since(began) }
}

// end records how long expressions took.
func (s *stopwatch) end() {
	if s != nil && s.evaluated {
		s.metrics.expressed.Observe(s.expressions.Seconds())
	}
}
