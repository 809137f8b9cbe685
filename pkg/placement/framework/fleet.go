// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Fleet is a snapshot for one decision.
type Fleet struct {
	// Now is the time of the decision.
	Now time.Time
	// Clusters are all clusters of the fleet, including those that are leaving. Sorting them by
	// name makes a decision faster.
	Clusters []Cluster
	// MostDecided is the largest Decided of any cluster, including clusters that are not in
	// Clusters.
	MostDecided int
}

// within is the fleet with only the named clusters; nil names all.
func (f *Fleet) within(names sets.Set[string]) *Fleet {
	if names == nil {
		return f
	}
	limited := &Fleet{Now: f.Now, MostDecided: f.MostDecided, Clusters: make([]Cluster, 0, len(names))}
	for _, cluster := range f.Clusters {
		if names.Has(cluster.Name) {
			limited.Clusters = append(limited.Clusters, cluster)
		}
	}
	return limited
}

// byName returns the clusters sorted by name.
func (f *Fleet) byName() []*Cluster {
	clusters := make([]*Cluster, len(f.Clusters))
	for i := range f.Clusters {
		clusters[i] = &f.Clusters[i]
	}
	compare := func(a, b *Cluster) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(clusters, compare) {
		slices.SortFunc(clusters, compare)
	}
	return clusters
}

// Cluster is everything that a decision can use about one cluster.
type Cluster struct {
	Name   string
	Labels map[string]string
	Taints []Taint
	// Properties are the cluster's properties by name, as reported, including resource properties.
	Properties map[string]string
	// Namespaces are the cluster's namespaces. Nil if it does not report them, which counts as
	// having all.
	Namespaces map[string]string
	// Leaving is true once the cluster is leaving the fleet.
	Leaving bool
	Agent   Agent

	// Capacity and Allocatable are the cluster's resources by name.
	Capacity, Allocatable map[string]resource.Quantity
	// Scores are external scores of the cluster, by the name of their sheet.
	Scores map[string]ScoreSheet
	// Decided is how many other placements have the cluster now.
	Decided int
	// Source is the cluster's original object, for Terms that the caller compiled.
	Source any
}

// ScoreSheet is a set of external scores of a cluster.
type ScoreSheet struct {
	Values map[string]int64
	// Until is when it expires; zero is never.
	Until time.Time
}

// Valid is true if the sheet has not expired at that time.
func (s ScoreSheet) Valid(now time.Time) bool { return s.Until.IsZero() || now.Before(s.Until) }

// Agent is the last report of the cluster's agent.
type Agent struct {
	// Reported is false for a cluster whose agent has never reported.
	Reported bool
	// LastHeartbeat is the last recorded heartbeat. While the cluster is Heard, there may be later
	// ones.
	LastHeartbeat time.Time
	// Heard is true while the hub reports that it receives heartbeats.
	Heard  bool
	Joined bool
	Health Health
	// HealthSince is when Health last changed.
	HealthSince time.Time
}

// Health is the agent's report about its own cluster.
type Health int

const (
	// HealthUnreported means that the agent has not reported it.
	HealthUnreported Health = iota
	// Healthy means that the agent reports its cluster as healthy.
	Healthy
	// Unhealthy means that the agent reports otherwise, or cannot tell.
	Unhealthy
)

// Taint repels placements that do not tolerate it. The rules define its effects.
type Taint struct {
	Key, Value, Effect string
	// Added is when the cluster got it; zero if unknown.
	Added time.Time
}

// String formats the taint as kubectl does.
func (t *Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}
