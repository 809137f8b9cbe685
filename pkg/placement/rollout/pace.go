// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

// standardPeriod is the default of unavailablePeriodSeconds. The schema has the same default, but
// might not have been applied to the object.
const standardPeriod = 60 * time.Second

// UnavailablePeriod is how long a member whose objects are not tracked counts as unavailable after a change.
func UnavailablePeriod(spec *placementv1beta1.PlacementSpec) time.Duration {
	if update := spec.Strategy.RollingUpdate; update != nil && update.UnavailablePeriodSeconds != nil {
		return time.Duration(*update.UnavailablePeriodSeconds) * time.Second
	}
	return standardPeriod
}

// PaceOf computes the pace of a placement. Percentages are of the target, rounded up.
func PaceOf(spec *placementv1beta1.PlacementSpec, bindings []placementv1beta1.BindingObject) (Pace, error) {
	pace := Pace{Target: target(spec.Policy, bindings), UnavailablePeriod: UnavailablePeriod(spec)}
	unavailable, surge := intstr.FromString("25%"), intstr.FromString("25%")
	if update := spec.Strategy.RollingUpdate; update != nil {
		if update.MaxUnavailable != nil {
			unavailable = *update.MaxUnavailable
		}
		if update.MaxSurge != nil {
			surge = *update.MaxSurge
		}
	}
	unavailable, surge = intstr.Parse(unavailable.String()), intstr.Parse(surge.String()) // The schema accepts "5" too.
	var err error
	if pace.MaxUnavailable, err = intstr.GetScaledValueFromIntOrPercent(&unavailable, pace.Target, true); err != nil {
		return Pace{}, fmt.Errorf("maxUnavailable: %w", err)
	}
	if pace.MaxSurge, err = intstr.GetScaledValueFromIntOrPercent(&surge, pace.Target, true); err != nil {
		return Pace{}, fmt.Errorf("maxSurge: %w", err)
	}
	return pace, nil
}

// target is the desired number of members. An evicted member counts as long as its binding exists,
// because another one may replace it.
func target(policy *placementv1beta1.PlacementPolicy, bindings []placementv1beta1.BindingObject) int {
	if n, known := objects.Wanted(policy); known {
		return n
	}
	n := 0
	for _, b := range bindings {
		if b.GetSpec().State != placementv1beta1.BindingUnscheduled {
			n++
		}
	}
	return n
}

// ApplyStrategyOf is the placement's apply strategy with all defaults.
func ApplyStrategyOf(spec *placementv1beta1.PlacementSpec) *placementv1beta1.ApplyStrategy {
	strategy := spec.Strategy.ApplyStrategy.WithDefaults()
	return &strategy
}
