// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"slices"
	"time"

	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
)

const (
	// validity is how long scores count.
	validity = 10 * time.Minute
	// interval is the time between two writes of changed scores.
	interval = 30 * time.Second
	// step is the smallest change that is written.
	step = 2
)

// isDue reports whether scores must be written over those that the hub has.
func isDue(has *clusterv1alpha1.AddOnPlacementScoreStatus, scores []clusterv1alpha1.AddOnPlacementScoreItem, now time.Time) bool {
	if has.ValidUntil == nil {
		return true
	}
	age := now.Sub(has.ValidUntil.Add(-validity))
	return age < 0 || age >= validity/2 || age >= interval && isChanged(has.Scores, scores)
}

func isChanged(a, b []clusterv1alpha1.AddOnPlacementScoreItem) bool {
	return !slices.EqualFunc(a, b, func(a, b clusterv1alpha1.AddOnPlacementScoreItem) bool {
		return a.Name == b.Name && a.Value-b.Value < step && b.Value-a.Value < step
	})
}
