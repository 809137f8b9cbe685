// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustereligibility

import (
	"strings"
	"testing"
	"time"

	"fleetgate.io/fleetgate/pkg/placement/framework"
)

func TestFilter(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	well := framework.Agent{Reported: true, LastHeartbeat: now, Joined: true, Health: framework.Healthy}
	with := func(change func(*framework.Cluster)) framework.Cluster {
		c := framework.Cluster{Name: "a", Agent: well}
		change(&c)
		return c
	}
	cases := map[string]struct {
		cluster framework.Cluster
		want    string // "" is eligible
	}{
		"all well":                 {cluster: with(func(*framework.Cluster) {})},
		"leaving":                  {cluster: with(func(c *framework.Cluster) { c.Leaving = true }), want: "cluster has left the fleet"},
		"not approved":             {cluster: with(func(c *framework.Cluster) { c.Taints = []framework.Taint{{Key: "fleetgate.io/unapproved"}} }), want: "approval"},
		"no agent":                 {cluster: with(func(c *framework.Cluster) { c.Agent = framework.Agent{} }), want: "not connected"},
		"heartbeat at the limit":   {cluster: with(func(c *framework.Cluster) { c.Agent.LastHeartbeat = now.Add(-HeartbeatLimit) })},
		"heartbeat over the limit": {cluster: with(func(c *framework.Cluster) { c.Agent.LastHeartbeat = now.Add(-HeartbeatLimit - 1) }), want: "heartbeat"},
		"heard, with an old heartbeat": {cluster: with(func(c *framework.Cluster) {
			c.Agent.Heard, c.Agent.LastHeartbeat = true, now.Add(-HeardLimit)
		})},
		"said to be heard for far too long": {cluster: with(func(c *framework.Cluster) {
			c.Agent.Heard, c.Agent.LastHeartbeat = true, now.Add(-HeardLimit-1)
		}), want: "the limit is 15m0s"},
		"not joined":        {cluster: with(func(c *framework.Cluster) { c.Agent.Joined = false }), want: "not joined"},
		"health never said": {cluster: with(func(c *framework.Cluster) { c.Agent.Health = framework.HealthUnreported }), want: "health"},
		"unhealthy for a moment": {cluster: with(func(c *framework.Cluster) {
			c.Agent.Health, c.Agent.HealthSince = framework.Unhealthy, now.Add(-time.Minute)
		})},
		"unhealthy for a long time": {cluster: with(func(c *framework.Cluster) {
			c.Agent.Health, c.Agent.HealthSince = framework.Unhealthy, now.Add(-6*time.Minute)
		}), want: "unhealthy"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Rule{Unapproved: "fleetgate.io/unapproved"}.Filter(&framework.Policy{}, &framework.Fleet{Now: now}, &tc.cluster)
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("Filter() = %q, want it to contain %q", got, tc.want)
			}
		})
	}
}

func TestFilter_StricterPolicyRefusesSooner(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	cluster := &framework.Cluster{Agent: framework.Agent{Reported: true, LastHeartbeat: now.Add(-time.Minute), Joined: true, Health: framework.Healthy}}
	for silence, want := range map[time.Duration]bool{0: true, time.Hour: true, time.Minute: true, 59 * time.Second: false} {
		reason := Rule{Unapproved: "fleetgate.io/unapproved"}.Filter(&framework.Policy{Silence: silence}, &framework.Fleet{Now: now}, cluster)
		if got := reason == ""; got != want {
			t.Errorf("after a minute of silence, of which %s are allowed: %q, want it to pass: %t", silence, reason, want)
		}
	}
	cluster.Agent.Heard = true
	if reason := (Rule{}).Filter(&framework.Policy{Silence: 2 * time.Second}, &framework.Fleet{Now: now}, cluster); reason != "" {
		t.Errorf("of a cluster that is heard, whose heartbeat is of a minute ago: %q", reason)
	}
}

func TestFilter_UnapprovedClusterIsNotReportedDisconnected(t *testing.T) {
	cluster := &framework.Cluster{Taints: []framework.Taint{{Key: "fleetgate.io/unapproved"}}}
	if got := (Rule{Unapproved: "fleetgate.io/unapproved"}).Brief(&framework.Policy{}, &framework.Fleet{}, cluster); got != "waiting for approval" {
		t.Errorf("Brief() = %q", got)
	}
}
