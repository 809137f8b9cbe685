// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"slices"
	"strings"
)

// cycle is one decision in progress.
type cycle struct {
	policy  *Policy
	fleet   *Fleet
	filters filters
	// clusters are sorted by name.
	clusters []*Cluster
	holdings map[string]Holding
	// limit is how many unselected clusters PickN reports; 0 is all.
	limit    int
	decision Decision
}

func newCycle(policy *Policy, fleet *Fleet, rules []Rule, holdings []Holding) *cycle {
	fleet = fleet.within(policy.Within)
	c := &cycle{policy: policy, fleet: fleet, filters: newFilters(rules, policy, fleet), clusters: fleet.byName(),
		holdings: make(map[string]Holding, len(holdings)), decision: Decision{Fulfilled: true}}
	for _, h := range holdings {
		c.holdings[h.Cluster] = h
	}
	c.dropDangling()
	return c
}

// dropDangling drops holdings of clusters that left, are leaving, or are outside the policy. Later
// steps can ignore these holdings.
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

// kept returns the cluster's holding if it is selected for the current policy. It is not filtered
// again.
func (c *cycle) kept(name string) (Holding, bool) {
	h, found := c.holdings[name]
	return h, found && h.Current && h.selected()
}

// pickAll selects every cluster with a current holding, whatever the rules say now, and every other
// one that passes.
func (c *cycle) pickAll() {
	for _, cluster := range c.clusters {
		if _, kept := c.kept(cluster.Name); kept || c.filter(cluster) == "" {
			c.take(cluster.Name, nil)
		} else if c.holdings[cluster.Name].selected() {
			c.drop(cluster.Name)
		}
	}
}

// pickFixed selects the named clusters that exist and are eligible; one that already has the
// placement keeps it.
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
		c.miss(Choice{Cluster: name, Result: c.missing(name)})
		return
	}
	if c.holdings[name].selected() {
		c.take(name, nil)
		return
	}
	if reason := c.filter(cluster); reason != "" {
		c.miss(Choice{Cluster: name, Result: Ineligible, Reason: reason})
		return
	}
	c.take(name, nil)
}

// missing says why a named cluster is not available.
func (c *cycle) missing(name string) Result {
	if c.policy.Within == nil || c.policy.Within.Has(name) {
		return Unknown
	}
	return Outside
}

// filter applies the rules and records the first refusal.
func (c *cycle) filter(cluster *Cluster) string {
	rule, reason := c.filters.firstRefusal(cluster, c.holdings[cluster.Name].selected())
	if reason != "" {
		c.refuse(cluster.Name, rule, reason)
	}
	return reason
}

func (c *cycle) refuse(cluster, rule, reason string) {
	c.decision.Refusals = append(c.decision.Refusals, Refusal{Cluster: cluster, Rule: rule, Reason: reason})
}

// take selects a cluster, through its existing holding if there is one.
func (c *cycle) take(name string, score *Score) {
	h, found := c.holdings[name]
	switch {
	case !found:
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
	d.Until = c.filters.until
	slices.SortFunc(d.Selected, func(a, b Choice) int { return strings.Compare(a.Cluster, b.Cluster) })
	for _, names := range [][]string{d.Add, d.Adopt, d.Drop, d.Waiting} {
		slices.Sort(names)
	}
	return d
}
