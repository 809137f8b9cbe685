// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// Arrival measures how long changes of placements, or of what they select, take until they
// are available on all members. A change begins when its snapshot was made, to the second,
// so a replica that leads since a moment ago measures what another one began.
type Arrival struct {
	seconds prometheus.Histogram
	// since is when this replica began to look. What was changed before and was not seen to
	// become available may have been so already, and only be so again.
	since time.Time

	mu sync.Mutex
	// last is the change of each placement that was measured last.
	last map[types.NamespacedName]time.Time
}

// NewArrival begins to measure.
func NewArrival(now time.Time) *Arrival {
	return &Arrival{
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "fleetgate_placement_available_seconds",
			Help:    "Seconds from the snapshot of a change of a placement, or of the resources that it selects, until it is available on all of its members. Changes that controllers make by themselves and update runs are not measured.",
			Buckets: []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 14400},
		}),
		since: now, last: map[types.NamespacedName]time.Time{},
	}
}

// Run exports the measurement until ctx ends.
func (a *Arrival) Run(ctx context.Context, registerer prometheus.Registerer) error {
	if err := registerer.Register(a.seconds); err != nil {
		return fmt.Errorf("registering the metric of how long placements take: %w", err)
	}
	defer registerer.Unregister(a.seconds)
	<-ctx.Done()
	return nil
}

// observe looks at a status that was written, and at the last change that it is of.
func (a *Arrival) observe(placement placementv1beta1.PlacementObject, changed, now time.Time) {
	available := meta.FindStatusCondition(placement.GetStatus().Conditions, placement.ConditionType(placementv1beta1.ConditionAvailable))
	if available == nil || available.Status != "True" || available.ObservedGeneration != placement.GetGeneration() || changed.Before(a.since.Truncate(time.Second)) {
		return
	}
	key := types.NamespacedName{Namespace: placement.GetNamespace(), Name: placement.GetName()}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !changed.After(a.last[key]) {
		return
	}
	a.last[key] = changed
	a.seconds.Observe(max(0, now.Sub(changed).Seconds()))
}

// forget says that a placement is gone.
func (a *Arrival) forget(placement types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.last, placement)
}
