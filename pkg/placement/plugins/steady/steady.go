// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package steady prefers clusters that already have the placement: 100 for them, 0 for the rest.
package steady

import "fleetgate.io/fleetgate/pkg/placement/framework"

// Name is the scorer's name.
const Name = "Steady"

const maxScore = 100

// Scorer implements framework.Scorer.
type Scorer struct{}

var _ framework.Scorer = Scorer{}

// Name implements framework.Scorer.
func (Scorer) Name() string { return Name }

// Score implements framework.Scorer.
func (Scorer) Score(policy *framework.Policy, _ *framework.Fleet, _ []*framework.Cluster) func(*framework.Cluster) int64 {
	return func(cluster *framework.Cluster) int64 {
		if policy.Current.Has(cluster.Name) {
			return maxScore
		}
		return 0
	}
}
