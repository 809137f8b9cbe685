// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustereligibility refuses new placements on a cluster that is leaving, whose agent has
// not reported for a while, that has not joined, or that has reported itself unhealthy for a while.
// It never takes a placement from a cluster: an outage must not delete anything.
package clustereligibility

import (
	"fmt"
	"slices"
	"time"

	"fleetgate.io/fleetgate/pkg/placement/framework"
)

// Name is the rule's name in diagnoses.
const Name = "ClusterEligibility"

const (
	// HeartbeatLimit is the maximum age of the agent's last report, unless the hub reports that it
	// receives heartbeats.
	HeartbeatLimit = 5 * time.Minute
	// HeardLimit is the maximum age in that case. Heartbeats are recorded at least every five
	// minutes, if any arrive, and an agent may be configured to send one every ten.
	HeardLimit = 15 * time.Minute
	// UnhealthyLimit is how long a cluster may have been unhealthy.
	UnhealthyLimit = 5 * time.Minute
)

// Rule implements framework.Rule.
type Rule struct {
	// Unapproved is the key of the taint of clusters that wait for approval, which cannot be
	// tolerated; empty if there is none.
	Unapproved string
}

var (
	_ framework.Rule      = Rule{}
	_ framework.Admitting = Rule{}
)

// Name implements framework.Rule.
func (Rule) Name() string { return Name }

// AdmitsOnly implements framework.Admitting.
func (Rule) AdmitsOnly() {}

// Filter implements framework.Rule.
func (r Rule) Filter(policy *framework.Policy, fleet *framework.Fleet, cluster *framework.Cluster) string {
	return r.ineligible(cluster, fleet.Now, patience(policy))
}

// patience is the policy's maximum age of a heartbeat if the hub does not receive any.
func patience(policy *framework.Policy) time.Duration {
	if policy.Silence > 0 {
		return min(policy.Silence, HeartbeatLimit)
	}
	return HeartbeatLimit
}

// Brief implements framework.Rule.
func (r Rule) Brief(policy *framework.Policy, fleet *framework.Fleet, cluster *framework.Cluster) string {
	if cluster.Leaving {
		return "leaving the fleet"
	}
	if r.unapproved(cluster) {
		return "waiting for approval"
	}
	return "not connected (" + disconnected(&cluster.Agent, fleet.Now, patience(policy)) + ")"
}

// Ineligible returns why the cluster cannot be picked at that time, or "".
func (r Rule) Ineligible(cluster *framework.Cluster, now time.Time) string {
	return r.ineligible(cluster, now, HeartbeatLimit)
}

func (r Rule) ineligible(cluster *framework.Cluster, now time.Time, patience time.Duration) string {
	if cluster.Leaving {
		return "cluster has left the fleet"
	}
	if r.unapproved(cluster) {
		return "cluster waits for approval: its taint " + r.Unapproved + " has to be taken away"
	}
	if reason := disconnected(&cluster.Agent, now, patience); reason != "" {
		return "cluster is not connected to the fleet: " + reason
	}
	return ""
}

func (r Rule) unapproved(cluster *framework.Cluster) bool {
	return r.Unapproved != "" && slices.ContainsFunc(cluster.Taints, func(t framework.Taint) bool { return t.Key == r.Unapproved })
}

func disconnected(agent *framework.Agent, now time.Time, patience time.Duration) string {
	if agent.Heard {
		patience = HeardLimit
	}
	switch {
	case !agent.Reported:
		return "member agent not online yet"
	case now.Sub(agent.LastHeartbeat) > patience:
		return fmt.Sprintf("no recent heartbeat signals, the limit is %s", patience)
	case !agent.Joined:
		return "member agent not joined yet"
	case agent.Health == framework.HealthUnreported:
		return "health condition from member agent is not available"
	case agent.Health == framework.Unhealthy && now.Sub(agent.HealthSince) > UnhealthyLimit:
		return fmt.Sprintf("unhealthy for longer than %s", UnhealthyLimit)
	}
	return ""
}
