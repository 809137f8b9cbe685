// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"time"
)

// Rule filters one cluster at a time.
type Rule interface {
	// Name is the rule's name in diagnoses.
	Name() string
	// Filter returns why the cluster is refused, or "" if it passes. Messages quote the reason.
	Filter(policy *Policy, fleet *Fleet, cluster *Cluster) (reason string)
	// Brief returns a short form of Filter's reason that many clusters can share: "lacked label
	// env=prod". It is called only for clusters that Filter refuses.
	Brief(policy *Policy, fleet *Fleet, cluster *Cluster) string
}

// Expiring is a Rule whose verdicts can expire: a toleration ends, a report becomes too old.
type Expiring interface {
	// Until returns when the verdict about the cluster expires even if nothing changes; zero is
	// never.
	Until(policy *Policy, fleet *Fleet, cluster *Cluster) time.Time
}

// Admitting is a Rule about new clusters only. It does not filter a cluster that has the placement,
// even if the policy has changed since.
type Admitting interface {
	// AdmitsOnly does nothing but mark the rule.
	AdmitsOnly()
}

// Ranker ranks clusters for a policy.
type Ranker interface {
	// Rank reads all clusters of the fleet, and returns the function that scores one.
	Rank(policy *Policy, fleet *Fleet) func(cluster *Cluster) int32
}

// Spreader spreads clusters evenly.
type Spreader interface {
	// Name is the name in diagnoses.
	Name() string
	// Start begins with the clusters that already have the placement. It returns nil if the policy
	// does not ask for an even spread.
	Start(policy *Policy, fleet *Fleet, selected []*Cluster) Spread
}

// Spread is one placement's spread while clusters are being picked.
type Spread interface {
	// Class numbers the clusters from 0. Clusters of one class always get the same verdict.
	Class(cluster *Cluster) int
	// Score returns the effect of taking one more cluster of a class: a score, or the reason why it
	// must not be taken.
	Score(class int) (score int32, reason string)
	// Best is a score that no class can exceed now.
	Best() int32
	// Take counts one more cluster of the class.
	Take(class int)
}

// Profile is the rules and rankers of a decision.
type Profile struct {
	// Rules filter for each kind of policy in this order; the first refusal counts.
	Rules map[Kind][]Rule
	// Affinity ranks for PickN.
	Affinity Ranker
	// Spread filters and scores for PickN, after the rules.
	Spread Spreader
	// MaxUnselected limits the unselected clusters that PickN reports; 0 is all.
	MaxUnselected int
}

// Decide decides for one placement that keeps its clusters: holdings are the clusters that have it
// now. It fails only for a kind of policy without rules.
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
