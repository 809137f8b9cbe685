// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package allocatable scores clusters by the remaining amount of a resource: 100 for the most, -100
// for the least of all candidates, proportionally between. A cluster that does not report both
// allocatable and capacity of the resource gets 0.
package allocatable

import (
	"math"

	"fleetgate.io/fleetgate/pkg/placement/framework"
)

// The names of the scorers.
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
	if _, known := cluster.Capacity[s.resource]; !ok || !known {
		return 0, false
	}
	return left.AsApproximateFloat64(), true
}
