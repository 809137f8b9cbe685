// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package allocatable is the score "clusters that have more left of a resource come
// first": 100 for the most, -100 for the least of all candidates, in proportion between.
// A cluster that does not tell both allocatable and capacity of the resource is given
// nothing.
package allocatable

import (
	"math"

	"fleetgate.io/fleetgate/pkg/placement/framework"
)

// The scorers that there are.
const (
	CPUName    = "ResourceAllocatableCPU"
	MemoryName = "ResourceAllocatableMemory"
)

// Scorer implements framework.Scorer.
type Scorer struct{ name, resource string }

var _ framework.Scorer = Scorer{}

// CPU scores by CPU.
func CPU() Scorer { return Scorer{name: CPUName, resource: "cpu"} }

// Memory scores by memory.
func Memory() Scorer { return Scorer{name: MemoryName, resource: "memory"} }

// Name implements framework.Scorer.
func (s Scorer) Name() string { return s.name }

// Score implements framework.Scorer.
func (s Scorer) Score(_ *framework.Policy, _ *framework.Fleet, candidates []*framework.Cluster) func(*framework.Cluster) int64 {
	least, most := math.Inf(1), math.Inf(-1)
	for _, cluster := range candidates {
		if left, ok := s.left(cluster); ok {
			least, most = min(least, left), max(most, left)
		}
	}
	return func(cluster *framework.Cluster) int64 {
		left, ok := s.left(cluster)
		switch {
		case !ok:
			return 0
		case most == least:
			return 100
		}
		ratio := (left - least) / (most - least)
		return int64((ratio - 0.5) * 2 * 100)
	}
}

func (s Scorer) left(cluster *framework.Cluster) (float64, bool) {
	left, ok := cluster.Allocatable[s.resource]
	if _, told := cluster.Capacity[s.resource]; !ok || !told {
		return 0, false
	}
	return left.AsApproximateFloat64(), true
}
