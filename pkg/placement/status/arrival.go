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

// Arrival measures how long changes of placements, or of their selected resources, take until they are
// available on all members. A change starts at the creation time of its snapshot, in whole seconds, so
// a new leader can measure changes that started before.
type Arrival struct {
	seconds prometheus.Histogram
	// since is the start of this replica. An older change that was not seen to become available may
	// have been available before, and only be available again.
	since time.Time

	mu sync.Mutex
	// last is the last measured change of each placement.
	last map[types.NamespacedName]time.Time
}

// NewArrival returns the measurement of a replica that starts now.
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

// observe evaluates a written status and the time of its last change.
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

func (a *Arrival) forget(placement types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.last, placement)
}
