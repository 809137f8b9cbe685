// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"cmp"
	"strings"
)

// State is how far a holding has come.
type State string

const (
	// Scheduled is picked, but nothing has been sent yet.
	Scheduled State = "Scheduled"
	// Bound is picked and sent.
	Bound State = "Bound"
	// Unscheduled is to be withdrawn.
	Unscheduled State = "Unscheduled"
	// Terminating is being withdrawn. Until it is gone its cluster cannot be
	// given a new holding.
	Terminating State = "Terminating"
)

// Holding says that a cluster has, or had, the placement.
type Holding struct {
	Cluster string
	State   State
	// Current is false when the holding was made for an earlier policy.
	Current bool
	// Score is what the cluster was picked with; nil if it was not ranked.
	Score *Score
}

func (h Holding) selected() bool { return h.State == Scheduled || h.State == Bound }

// byFarewell orders holdings by who has to go first when there are too many:
// those to which nothing was sent yet, then those without a score, then the
// lowest score, then the smaller name. Scores are those of the time when the
// cluster was picked.
func byFarewell(a, b Holding) int {
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
		return a.Score.compare(*b.Score)
	}
	return strings.Compare(a.Cluster, b.Cluster)
}

// Score is how well a cluster suits, the higher the better. Spread counts before
// Affinity.
type Score struct {
	// Spread is what taking the cluster does to the spread.
	Spread int32
	// Affinity is the sum of the weights that the cluster gets.
	Affinity int32
}

func (s Score) compare(other Score) int {
	return cmp.Or(cmp.Compare(s.Spread, other.Spread), cmp.Compare(s.Affinity, other.Affinity))
}
