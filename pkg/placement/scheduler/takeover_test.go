// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"testing"
	"time"

	"fleetgate.io/fleetgate/pkg/placement/framework"
)

func TestTakeOver_NeedsConnectedMemberWithoutThePlacement(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	// fleet has members with heartbeats of that age, in minutes.
	fleet := func(heartbeats ...int) *framework.Fleet {
		f := &framework.Fleet{Now: noon}
		for i, minutes := range heartbeats {
			f.Clusters = append(f.Clusters, framework.Cluster{Name: fmt.Sprintf("m-%d", i), Agent: framework.Agent{
				Reported: true, Joined: true, Health: framework.Healthy, LastHeartbeat: noon.Add(-time.Duration(minutes) * time.Minute)}})
		}
		return f
	}
	has := func(members ...int) []framework.Holding {
		var all []framework.Holding
		for _, i := range members {
			all = append(all, framework.Holding{Cluster: fmt.Sprintf("m-%d", i), State: framework.Bound, Current: true})
		}
		return all
	}
	two := &framework.Policy{Kind: framework.PickN, Count: 2, Silence: time.Minute}
	for name, tc := range map[string]struct {
		policy   *framework.Policy
		fleet    *framework.Fleet
		holdings []framework.Holding
		want     bool
	}{
		"free member":                                 {two, fleet(10, 0, 0), has(0, 1), true},
		"placement on all members":                    {two, fleet(10, 0), has(0, 1), false},
		"free member without heartbeat":               {two, fleet(10, 0, 10), has(0, 1), false},
		"free member that is needed anyway":           {&framework.Policy{Kind: framework.PickN, Count: 3, Silence: time.Minute}, fleet(10, 10, 0), has(0, 1), false},
		"free member leaves":                          {two, func() *framework.Fleet { f := fleet(10, 0, 0); f.Clusters[2].Leaving = true; return f }(), has(0, 1), false},
		"placement on all eligible members":           {&framework.Policy{Kind: framework.PickAll}, fleet(10, 0, 0), has(0, 1, 2), false},
		"free member still has a terminating binding": {two, fleet(10, 0, 0), append(has(0, 1), framework.Holding{Cluster: "m-2", State: framework.Terminating}), true},
		"fewer members than wanted, one free":         {two, fleet(10, 0), has(0), false},
	} {
		profile := Profile()
		why, err := takeOver(&profile, tc.policy, tc.fleet, tc.holdings, "m-0")
		if err != nil || (why == "") != tc.want {
			t.Errorf("%s: %q, %v, want a replacement: %v", name, why, err, tc.want)
		}
	}
}
