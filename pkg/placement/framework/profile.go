// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"time"
)

// Rule judges one cluster at a time.
type Rule interface {
	// Name is the rule's name in diagnoses.
	Name() string
	// Judge returns why the cluster is refused, or "" if the rule has nothing
	// against it. The reason ends up in messages for people.
	Judge(policy *Policy, fleet *Fleet, cluster *Cluster) (reason string)
	// Brief tells in a few words what Judge has against the cluster, such that
	// many clusters can be counted by it: "lacked label env=prod". It is only
	// asked of clusters that Judge refuses.
	Brief(policy *Policy, fleet *Fleet, cluster *Cluster) string
}

// Expiring is a Rule whose verdicts can end by themselves: a toleration runs out, a
// report grows old.
type Expiring interface {
	// Until returns when what Judge says of the cluster ends though nothing changes;
	// zero is never.
	Until(policy *Policy, fleet *Fleet, cluster *Cluster) time.Time
}

// Ranker says how much a policy likes clusters.
type Ranker interface {
	// Rank looks at all clusters of the fleet, and returns what it gives to one.
	Rank(policy *Policy, fleet *Fleet) func(cluster *Cluster) int32
}

// Spreader keeps an eye on how evenly clusters are taken.
type Spreader interface {
	// Name is the name in diagnoses.
	Name() string
	// Start begins with the clusters that have the placement already. It returns
	// nil if the policy does not ask for an even spread.
	Start(policy *Policy, fleet *Fleet, taken []*Cluster) Spread
}

// Spread is one placement's spread while clusters are being picked.
type Spread interface {
	// Class numbers the clusters from 0 so that those of one class always get the
	// same answer.
	Class(cluster *Cluster) int
	// Judge says what taking one more cluster of a class would do: a score, or
	// the reason why it must not be.
	Judge(class int) (score int32, reason string)
	// Best is a score that no class can exceed now.
	Best() int32
	// Take counts one more cluster of the class.
	Take(class int)
}

// Profile is what judges and ranks.
type Profile struct {
	// Rules say which rules judge for which kind of policy, in the order in which
	// they are asked; the first no counts.
	Rules map[Kind][]Rule
	// Affinity ranks for PickN.
	Affinity Ranker
	// Spread judges and ranks for PickN, after the rules.
	Spread Spreader
	// MaxUnselected is how many clusters that were not picked PickN tells; 0 is
	// all.
	MaxUnselected int
}

// Decide makes the decision for one placement that keeps what it has: holdings are
// the clusters that have it now. It fails only for a kind of policy without rules.
func (p Profile) Decide(policy *Policy, fleet *Fleet, holdings []Holding) (Decision, error) {
	rules, ok := p.Rules[policy.Kind]
	if !ok {
		return Decision{}, fmt.Errorf("no rules for placement type %q", policy.Kind)
	}
	c := newCycle(policy, fleet, rules, holdings)
	c.limit = p.MaxUnselected
	switch policy.Kind {
	case PickFixed:
		c.pickFixed()
	case PickN:
		c.pickN(p.Affinity, p.Spread)
	default:
		c.pickAll()
	}
	return c.finish(), nil
}
