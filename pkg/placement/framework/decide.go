// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"slices"
	"strings"
)

// Rule judges one cluster at a time.
type Rule interface {
	// Name is the rule's name in diagnoses.
	Name() string
	// Judge returns why the cluster is refused, or "" if the rule has nothing
	// against it. The reason ends up in messages for people.
	Judge(policy *Policy, fleet *Fleet, cluster *Cluster) (reason string)
}

// Profile says which rules judge for which kind of policy, in the order in
// which they are asked; the first no counts.
type Profile map[Kind][]Rule

// Decide makes the decision for one placement. holdings are the clusters that
// have it now. It fails only for a kind of policy without rules.
func (p Profile) Decide(policy *Policy, fleet *Fleet, holdings []Holding) (Decision, error) {
	rules, ok := p[policy.Kind]
	if !ok {
		return Decision{}, fmt.Errorf("no rules for placement type %q", policy.Kind)
	}
	c := newCycle(policy, fleet, rules, holdings)
	if policy.Kind == PickFixed {
		c.pickFixed()
	} else {
		c.pickAll()
	}
	return c.finish(), nil
}

// cycle is one decision while it is being made.
type cycle struct {
	policy   *Policy
	fleet    *Fleet
	rules    []Rule
	clusters map[string]*Cluster
	holdings map[string]Holding
	dropped  map[string]bool
	decision Decision
}

func newCycle(policy *Policy, fleet *Fleet, rules []Rule, holdings []Holding) *cycle {
	c := &cycle{policy: policy, fleet: fleet, rules: rules,
		clusters: make(map[string]*Cluster, len(fleet.Clusters)),
		holdings: make(map[string]Holding, len(holdings)),
		dropped:  map[string]bool{},
		decision: Decision{Fulfilled: true},
	}
	for i := range fleet.Clusters {
		c.clusters[fleet.Clusters[i].Name] = &fleet.Clusters[i]
	}
	for _, h := range holdings {
		c.holdings[h.Cluster] = h
	}
	return c
}

// pickAll selects every cluster that has a current holding, whatever the rules
// would say of it today, and every other one that passes.
func (c *cycle) pickAll() {
	for name, cluster := range c.clusters {
		h, held := c.holdings[name]
		switch {
		case held && h.Current && h.selected() && !cluster.Leaving:
			c.selectCluster(name)
		case c.passes(cluster):
			c.take(name)
		case held && h.selected():
			c.drop(name)
		}
	}
	c.dropDangling()
}

// pickFixed selects the named clusters that are there and eligible; one that
// has the placement already keeps it.
func (c *cycle) pickFixed() {
	wanted := map[string]bool{}
	for _, name := range c.policy.Names {
		if wanted[name] {
			continue
		}
		wanted[name] = true
		c.pickNamed(name)
	}
	for name, h := range c.holdings {
		if !wanted[name] && h.selected() {
			c.drop(name)
		}
	}
	c.dropDangling()
}

func (c *cycle) pickNamed(name string) {
	cluster, ok := c.clusters[name]
	if !ok {
		c.miss(name, fmt.Sprintf("Specified cluster %q is not found", name))
		return
	}
	if h, held := c.holdings[name]; held && h.selected() && !cluster.Leaving {
		c.take(name)
		return
	}
	if reason := c.judge(cluster); reason != "" {
		c.miss(name, fmt.Sprintf("Cluster %q is not eligible for resource placement yet: %s", name, reason))
		return
	}
	c.take(name)
}

func (c *cycle) passes(cluster *Cluster) bool { return c.judge(cluster) == "" }

// judge asks the rules and writes the first no down.
func (c *cycle) judge(cluster *Cluster) string {
	for _, rule := range c.rules {
		if reason := rule.Judge(c.policy, c.fleet, cluster); reason != "" {
			c.decision.Diagnosis.Refusals = append(c.decision.Diagnosis.Refusals,
				Refusal{Cluster: cluster.Name, Rule: rule.Name(), Reason: reason})
			return reason
		}
	}
	return ""
}

// take selects a cluster, through the holding that it has if there is one.
func (c *cycle) take(name string) {
	h, held := c.holdings[name]
	switch {
	case !held:
		c.decision.Add = append(c.decision.Add, name)
	case h.State == Terminating:
		c.decision.Waiting = append(c.decision.Waiting, name)
	case !h.Current || h.State == Unscheduled:
		c.decision.Adopt = append(c.decision.Adopt, name)
	}
	c.selectCluster(name)
}

func (c *cycle) selectCluster(name string) {
	c.decision.Selected = append(c.decision.Selected, Choice{Cluster: name, Reason: SelectedReason(name)})
}

func (c *cycle) miss(name, reason string) {
	c.decision.Unselected = append(c.decision.Unselected, Choice{Cluster: name, Reason: reason})
	c.decision.Fulfilled = false
}

func (c *cycle) drop(name string) {
	if !c.dropped[name] {
		c.dropped[name] = true
		c.decision.Drop = append(c.decision.Drop, name)
	}
}

// dropDangling drops what is held by clusters that left, or are leaving.
func (c *cycle) dropDangling() {
	for name, h := range c.holdings {
		if cluster, ok := c.clusters[name]; h.selected() && (!ok || cluster.Leaving) {
			c.drop(name)
		}
	}
}

func (c *cycle) finish() Decision {
	d := c.decision
	byCluster := func(a, b Choice) int { return strings.Compare(a.Cluster, b.Cluster) }
	slices.SortFunc(d.Selected, byCluster)
	slices.SortFunc(d.Unselected, byCluster)
	slices.SortFunc(d.Diagnosis.Refusals, func(a, b Refusal) int { return strings.Compare(a.Cluster, b.Cluster) })
	for _, names := range [][]string{d.Add, d.Adopt, d.Drop, d.Waiting} {
		slices.Sort(names)
	}
	d.Diagnosis.Total, d.Diagnosis.Fit = len(c.fleet.Clusters), len(d.Selected)
	return d
}

// SelectedReason is the reason that a selected cluster shows; clients compare
// the text.
func SelectedReason(cluster string) string {
	return fmt.Sprintf("Successfully scheduled resources for placement in %q: picked by scheduling policy", cluster)
}
