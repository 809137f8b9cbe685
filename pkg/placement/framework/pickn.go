// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// candidate is a cluster that passed the rules.
type candidate struct {
	cluster  *Cluster
	affinity int32
	// current is true for a cluster that has the placement from an earlier policy.
	current bool
}

// byMerit orders candidates of one spread score, the best first: by affinity, then those that have
// the placement already, then the larger name. That the larger name wins is arbitrary, and clients
// rely on it.
func byMerit(a, b candidate) int {
	if a.affinity != b.affinity {
		return cmp.Compare(b.affinity, a.affinity)
	}
	if a.current != b.current {
		if a.current {
			return -1
		}
		return 1
	}
	return strings.Compare(b.cluster.Name, a.cluster.Name)
}

// pickN keeps as many as wanted of the clusters that have the placement from the current policy,
// and adds the best of the others.
func (c *cycle) pickN(ranker Ranker, spreader Spreader) {
	var kept []Holding
	for _, cluster := range c.clusters {
		if h, ok := c.kept(cluster.Name); ok {
			kept = append(kept, h)
		}
	}
	if surplus := len(kept) - c.policy.Count; surplus >= 0 {
		c.decision.Settled = true
		c.dropSurplus(kept, surplus)
		c.dropObsolete()
		return
	}
	for _, h := range kept {
		c.take(h.Cluster, h.Score)
	}
	c.fill(c.candidates(ranker), c.start(spreader, kept), spreader)
	c.dropObsolete()
	c.decision.Fulfilled = len(c.decision.Selected) >= c.policy.Count
}

// dropSurplus keeps all but surplus clusters.
func (c *cycle) dropSurplus(kept []Holding, surplus int) {
	if surplus > 0 {
		slices.SortFunc(kept, byRemovalOrder)
	}
	for i, h := range kept {
		if i < surplus {
			c.drop(h.Cluster)
		} else {
			c.take(h.Cluster, h.Score)
		}
	}
}

// dropObsolete drops what earlier policies picked and this one did not.
func (c *cycle) dropObsolete() {
	adopted := make(map[string]bool, len(c.decision.Adopt))
	for _, name := range c.decision.Adopt {
		adopted[name] = true
	}
	for name, h := range c.holdings {
		if h.selected() && !h.Current && !adopted[name] {
			c.drop(name)
		}
	}
}

// candidates filters and ranks the clusters that do not have the placement from the current policy.
func (c *cycle) candidates(ranker Ranker) []candidate {
	passed := make([]candidate, 0, len(c.clusters))
	rank := ranker.Rank(c.policy, c.fleet)
	for _, cluster := range c.clusters {
		h, found := c.holdings[cluster.Name]
		if _, kept := c.kept(cluster.Name); kept || c.filter(cluster) != "" {
			continue
		}
		passed = append(passed, candidate{cluster: cluster, affinity: rank(cluster), current: found && h.selected()})
	}
	slices.SortFunc(passed, byMerit)
	return passed
}

// start begins a spread with the kept clusters; nil if the policy has no spread.
func (c *cycle) start(spreader Spreader, kept []Holding) Spread {
	selected := make([]*Cluster, 0, len(kept))
	for _, h := range kept {
		selected = append(selected, c.find(h.Cluster))
	}
	return spreader.Start(c.policy, c.fleet, selected)
}

// fill picks from the sorted candidates until there are enough.
func (c *cycle) fill(candidates []candidate, spread Spread, spreader Spreader) {
	need := c.policy.Count - len(c.decision.Selected)
	if spread != nil {
		c.fillEvenly(candidates, spread, spreader.Name(), need)
		return
	}
	n := min(need, len(candidates))
	for _, picked := range candidates[:n] {
		c.take(picked.cluster.Name, &Score{Affinity: picked.affinity})
	}
	c.decision.Outscored = len(candidates) - n
	for _, rest := range candidates[n:][:min(c.room(), len(candidates)-n)] {
		c.reportOutscored(rest, 0)
	}
	c.reportRefused()
}

// room is how many more unselected clusters can be reported.
func (c *cycle) room() int {
	if c.limit == 0 {
		return math.MaxInt
	}
	return max(0, c.limit-len(c.decision.Unselected))
}

// reportOutscored reports that a cluster was not good enough.
func (c *cycle) reportOutscored(rest candidate, spread int32) {
	c.decision.Unselected = append(c.decision.Unselected, Choice{
		Cluster: rest.cluster.Name, Result: Outscored, Score: &Score{Spread: spread, Affinity: rest.affinity},
	})
}

// reportRefused reports the refusals sorted by name, as far as there is room.
func (c *cycle) reportRefused() {
	byCluster := func(a, b Refusal) int { return strings.Compare(a.Cluster, b.Cluster) }
	for _, r := range first(c.decision.Refusals, c.room(), byCluster) {
		c.decision.Unselected = append(c.decision.Unselected, Choice{Cluster: r.Cluster, Result: Refused, Reason: r.Reason})
	}
}
