// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"cmp"
	"strings"
)

// State is the state of a holding.
type State string

const (
	// Scheduled is picked, but nothing has been sent yet.
	Scheduled State = "Scheduled"
	// Bound is picked and sent.
	Bound State = "Bound"
	// Unscheduled is to be withdrawn.
	Unscheduled State = "Unscheduled"
	// Terminating is being withdrawn. Until it is gone its cluster cannot be given a new holding.
	Terminating State = "Terminating"
)

// Holding says that a cluster has, or had, the placement.
type Holding struct {
	Cluster string
	State   State
	// Current is false when the holding was made for an earlier policy.
	Current bool
	// Score is the score with which the cluster was picked; nil if it was not ranked.
	Score *Score
}

func (h Holding) selected() bool { return h.State == Scheduled || h.State == Bound }

// byRemovalOrder orders holdings for removal when there are too many: first those to which nothing was
// sent yet, then those without a score, then by the lowest score, then by the smaller name. Scores
// are those from when the cluster was picked.
func byRemovalOrder(a, b Holding) int {
	if a.State != b.State {
		if a.State == Scheduled {
			return -1
		}
		return 1
	}
	switch {
	case a.Score == nil && b.Score != nil:
		return -1
	case a.Score != nil && b.Score == nil:
		return 1
	case a.Score != nil && *a.Score != *b.Score:
		return cmp.Or(cmp.Compare(a.Score.Spread, b.Score.Spread), cmp.Compare(a.Score.Affinity, b.Score.Affinity))
	}
	return strings.Compare(a.Cluster, b.Cluster)
}

// Score is how well a cluster fits, the higher the better. Spread counts before Affinity.
type Score struct {
	// Spread is the effect of taking the cluster on the spread.
	Spread int32
	// Affinity is the sum of the cluster's weights.
	Affinity int32
}
