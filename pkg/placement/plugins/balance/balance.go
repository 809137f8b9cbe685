// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package balance prefers clusters with few other placements: 100 for a cluster without any, and
// from 100 down to -100 the larger its share is of the most used cluster's number.
package balance

import "fleetgate.io/fleetgate/pkg/placement/framework"

// Name is the scorer's name.
const Name = "Balance"

// best is the score of a cluster without other placements.
const best = 100

// Scorer implements framework.Scorer.
type Scorer struct{}

var _ framework.Scorer = Scorer{}

// Name implements framework.Scorer.
func (Scorer) Name() string { return Name }

// Score implements framework.Scorer.
func (Scorer) Score(_ *framework.Policy, fleet *framework.Fleet, candidates []*framework.Cluster) func(*framework.Cluster) int64 {
	most := fleet.MostDecided
	for _, cluster := range candidates {
		most = max(most, cluster.Decided)
	}
	return func(cluster *framework.Cluster) int64 {
		if cluster.Decided == 0 {
			return best
		}
		share := float64(cluster.Decided) / float64(most)
		// Doubled after truncation to a whole number: users compare it.
		return 2 * int64(best*(0.5-share))
	}
}
