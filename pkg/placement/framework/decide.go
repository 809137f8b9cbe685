// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"slices"
	"strings"
)

// cycle is one decision while it is being made.
type cycle struct {
	policy *Policy
	fleet  *Fleet
	jury   jury
	// clusters are in the order of their names.
	clusters []*Cluster
	holdings map[string]Holding
	// limit is how many unselected clusters PickN tells; 0 is all.
	limit    int
	decision Decision
}

func newCycle(policy *Policy, fleet *Fleet, rules []Rule, holdings []Holding) *cycle {
	fleet = fleet.within(policy.Within)
	c := &cycle{policy: policy, fleet: fleet, jury: newJury(rules, policy, fleet), clusters: fleet.byName(),
		holdings: make(map[string]Holding, len(holdings)), decision: Decision{Fulfilled: true}}
	for _, h := range holdings {
		c.holdings[h.Cluster] = h
	}
	c.dropDangling()
	return c
}

// dropDangling drops what is held by clusters that left, are leaving, or are not the
// policy's any more. Nobody after it needs to think of these holdings.
func (c *cycle) dropDangling() {
	for name, h := range c.holdings {
		if cluster := c.find(name); cluster != nil && !cluster.Leaving {
			continue
		}
		if h.selected() {
			c.drop(name)
		}
		delete(c.holdings, name)
	}
}

// find returns the cluster of that name, or nil.
func (c *cycle) find(name string) *Cluster {
	i, found := slices.BinarySearchFunc(c.clusters, name, func(cluster *Cluster, name string) int { return strings.Compare(cluster.Name, name) })
	if !found {
		return nil
	}
	return c.clusters[i]
}

// kept returns the cluster's holding if it is selected for the policy of now,
// which is not judged again.
func (c *cycle) kept(name string) (Holding, bool) {
	h, held := c.holdings[name]
	return h, held && h.Current && h.selected()
}

// pickAll selects every cluster that has a current holding, whatever the rules
// would say of it today, and every other one that passes.
func (c *cycle) pickAll() {
	for _, cluster := range c.clusters {
		if _, kept := c.kept(cluster.Name); kept || c.judge(cluster) == "" {
			c.take(cluster.Name, nil)
		} else if c.holdings[cluster.Name].selected() {
			c.drop(cluster.Name)
		}
	}
}

// pickFixed selects the named clusters that are there and eligible; one that
// has the placement already keeps it.
func (c *cycle) pickFixed() {
	wanted := make(map[string]bool, len(c.policy.Names))
	for _, name := range c.policy.Names {
		if !wanted[name] {
			wanted[name] = true
			c.pickNamed(name)
		}
	}
	for name, h := range c.holdings {
		if !wanted[name] && h.selected() {
			c.drop(name)
		}
	}
	slices.SortFunc(c.decision.Unselected, func(a, b Choice) int { return strings.Compare(a.Cluster, b.Cluster) })
}

func (c *cycle) pickNamed(name string) {
	cluster := c.find(name)
	if cluster == nil {
		c.miss(Choice{Cluster: name, Outcome: c.missing(name)})
		return
	}
	if c.holdings[name].selected() {
		c.take(name, nil)
		return
	}
	if reason := c.judge(cluster); reason != "" {
		c.miss(Choice{Cluster: name, Outcome: Ineligible, Reason: reason})
		return
	}
	c.take(name, nil)
}

// missing says why a named cluster is not there.
func (c *cycle) missing(name string) Outcome {
	if c.policy.Within == nil || c.policy.Within.Has(name) {
		return Unknown
	}
	return Outside
}

// judge asks the rules and writes the first no down.
func (c *cycle) judge(cluster *Cluster) string {
	rule, reason := c.jury.judge(cluster)
	if reason != "" {
		c.refuse(cluster.Name, rule, reason)
	}
	return reason
}

func (c *cycle) refuse(cluster, rule, reason string) {
	c.decision.Refusals = append(c.decision.Refusals, Refusal{Cluster: cluster, Rule: rule, Reason: reason})
}

// take selects a cluster, through the holding that it has if there is one.
func (c *cycle) take(name string, score *Score) {
	h, held := c.holdings[name]
	switch {
	case !held:
		c.decision.Add = append(c.decision.Add, name)
	case h.State == Terminating:
		c.decision.Waiting = append(c.decision.Waiting, name)
	case !h.Current || h.State == Unscheduled:
		c.decision.Adopt = append(c.decision.Adopt, name)
	}
	c.decision.Selected = append(c.decision.Selected, Choice{Cluster: name, Score: score})
}

func (c *cycle) miss(choice Choice) {
	c.decision.Unselected = append(c.decision.Unselected, choice)
	c.decision.Fulfilled = false
}

func (c *cycle) drop(name string) { c.decision.Drop = append(c.decision.Drop, name) }

func (c *cycle) finish() Decision {
	d := c.decision
	d.Until = c.jury.until
	slices.SortFunc(d.Selected, func(a, b Choice) int { return strings.Compare(a.Cluster, b.Cluster) })
	for _, names := range [][]string{d.Add, d.Adopt, d.Drop, d.Waiting} {
		slices.Sort(names)
	}
	return d
}
