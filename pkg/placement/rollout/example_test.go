// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"time"

	"fleetgate.io/fleetgate/pkg/placement/rollout"
)

// The caller describes each target of its rollout as a candidate. One of three can be unavailable, and
// one has already failed.
func ExamplePlan() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	candidate := func(site string) rollout.Candidate {
		c := rollout.Candidate{Wanted: "v2", Current: "v1", Available: now.Add(-time.Hour)}
		if site == "oslo" {
			c.Available, c.Failed = time.Time{}, true
		}
		return c
	}
	steps := rollout.Plan([]string{"berlin", "lisbon", "oslo"}, candidate, rollout.Pace{Target: 3, MaxUnavailable: 1}, now)
	fmt.Println("update:", steps.Update)
	fmt.Println("wait:", steps.Blocked)
	// Output:
	// update: [oslo]
	// wait: [berlin lisbon]
}
