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

// Fleet is the moment in which a decision is made.
type Fleet struct {
	// Now is the time of the decision.
	Now time.Time
	// Clusters are all clusters of the fleet, those that are leaving included. A
	// decision is made fastest if they are in the order of their names.
	Clusters []Cluster
	// MostDecided is the largest Decided of any cluster, also of those that are not
	// among Clusters.
	MostDecided int
}

// within is the fleet without the clusters that are not named; nil names all.
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

// byName returns the clusters in the order of their names.
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

// Cluster is what a decision may know of one cluster.
type Cluster struct {
	Name   string
	Labels map[string]string
	Taints []Taint
	// Properties are the cluster's properties by name, resource properties
	// included, as they were reported.
	Properties map[string]string
	// Namespaces are the namespaces that the cluster has. Nil if it does not
	// report them, which is taken for having all.
	Namespaces map[string]string
	// Leaving is true once the cluster is on its way out of the fleet.
	Leaving bool
	Agent   Agent

	// Capacity and Allocatable are the cluster's resources by name: what there is, and
	// what of it workloads can have.
	Capacity, Allocatable map[string]resource.Quantity
	// Scores are those that others give the cluster, by the name of their sheet.
	Scores map[string]ScoreSheet
	// Decided is how many other placements have the cluster now.
	Decided int
	// Source is what the cluster was made of, for Terms that the caller compiled.
	Source any
}

// ScoreSheet is what somebody has to say of a cluster.
type ScoreSheet struct {
	Values map[string]int64
	// Until is when it ends to be true; zero is never.
	Until time.Time
}

// Valid reports whether the sheet is true at a time.
func (s ScoreSheet) Valid(now time.Time) bool { return s.Until.IsZero() || now.Before(s.Until) }

// Agent is what the cluster's agent last said.
type Agent struct {
	// Reported is false for a cluster whose agent has never been heard of.
	Reported bool
	// LastHeartbeat is the last that is shown. Later ones may have come while the cluster is Heard.
	LastHeartbeat time.Time
	// Heard is true while the hub says that it hears of the agent.
	Heard  bool
	Joined bool
	Health Health
	// HealthSince is when Health last changed.
	HealthSince time.Time
}

// Health is what the agent says of its own cluster.
type Health int

const (
	// HealthUnreported means that the agent has not said anything about it.
	HealthUnreported Health = iota
	// Healthy means that the agent finds its cluster well.
	Healthy
	// Unhealthy means that it does not, or cannot tell.
	Unhealthy
)

// Taint repels placements that do not tolerate it. What its effects are is for the rules
// to say that judge by it.
type Taint struct {
	Key, Value, Effect string
	// Added is when the cluster got it; zero if nobody knows.
	Added time.Time
}

// String writes the taint as kubectl does.
func (t *Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}
