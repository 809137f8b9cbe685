// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package topologyspread limits how far the fullest group of clusters may be ahead of the emptiest,
// and ranks clusters by the spread. A group is clusters with the same value of a label.
//
// All clusters of the fleet form groups, including those that cannot be picked: a region in which
// every cluster is tainted stays empty and limits the others, because the constraint demands that.
// Only clusters that have the placement from the current policy count.
//
// A cluster's score is the effect of taking it: 1 for each constraint whose skew becomes smaller,
// -1 for each whose skew becomes larger, and -1000 for each soft one that it would break. A
// constraint ignores clusters without its label.
//
// With LimitOnly a cluster's score is 0 while no limit is broken, so that other scores decide
// within the limits. A cluster that breaks soft limits costs the excess; an excess of the
// constraint named first costs four times as much as the same of the next.
package topologyspread

import (
	"encoding/binary"
	"fmt"

	"fleetgate.io/fleetgate/pkg/placement/framework"
)

// Name is the rule's name in diagnoses.
const Name = "TopologySpreadConstraints"

// penalty is the cost of breaking a soft constraint.
const penalty = 1000

// maxImportance is how often importance decreases from the first constraint to the last.
const maxImportance = 7

// none is the group of a cluster that a constraint ignores.
const none = -1

// Spreader implements framework.Spreader.
type Spreader struct {
	// LimitOnly makes an even spread count only up to the limits.
	LimitOnly bool
}

var (
	_ framework.Spreader = Spreader{}
	_ framework.Spread   = (*spread)(nil)
)

// Name implements framework.Spreader.
func (Spreader) Name() string { return Name }

// Start implements framework.Spreader.
func (s Spreader) Start(policy *framework.Policy, fleet *framework.Fleet, selected []*framework.Cluster) framework.Spread {
	if len(policy.Spread) == 0 {
		return nil
	}
	started := &spread{limitOnly: s.LimitOnly, classes: map[string]int{}}
	for _, wanted := range policy.Spread {
		started.constraints = append(started.constraints, newConstraint(wanted, fleet))
	}
	for _, cluster := range selected {
		started.Take(started.Class(cluster))
	}
	return started
}

type spread struct {
	limitOnly   bool
	constraints []*constraint
	// classes numbers the existing combinations of groups.
	classes map[string]int
	// groups has a class's group for each constraint, class after class.
	groups []int
	// key is the buffer for the key of a combination.
	key []byte
}

// Class implements framework.Spread: clusters in the same groups are of one class.
func (s *spread) Class(cluster *framework.Cluster) int {
	before := len(s.groups)
	s.key = s.key[:0]
	for _, c := range s.constraints {
		group := c.groupOf(cluster)
		s.key = binary.AppendVarint(s.key, int64(group))
		s.groups = append(s.groups, group)
	}
	class, known := s.classes[string(s.key)]
	if known {
		s.groups = s.groups[:before]
		return class
	}
	class = len(s.classes)
	s.classes[string(s.key)] = class
	return class
}

// Score implements framework.Spread.
func (s *spread) Score(class int) (score int32, reason string) {
	if s.limitOnly {
		return s.scoreLimits(class)
	}
	for i, c := range s.constraints {
		group := s.groups[class*len(s.constraints)+i]
		if group == none {
			continue
		}
		change := c.change(group)
		broken := c.largest-c.smallest+change > c.maxSkew
		switch {
		case broken && !c.soft:
			return 0, c.reason
		case broken:
			score -= penalty
		default:
			score -= int32(change)
		}
	}
	return score, ""
}

// scoreLimits is Score if only limits count.
func (s *spread) scoreLimits(class int) (score int32, reason string) {
	for i, c := range s.constraints {
		group := s.groups[class*len(s.constraints)+i]
		if group == none {
			continue
		}
		switch beyond := c.ahead(group) - c.maxSkew; {
		case beyond > 0 && !c.soft:
			return 0, c.reason
		case beyond > 0:
			score -= int32(beyond) << (2 * max(0, maxImportance-i))
		}
	}
	return score, ""
}

// Best implements framework.Spread.
func (s *spread) Best() int32 {
	if s.limitOnly {
		return 0
	}
	var best int32
	for _, c := range s.constraints {
		best += c.best()
	}
	return best
}

// Take implements framework.Spread.
func (s *spread) Take(class int) {
	for i, c := range s.constraints {
		if group := s.groups[class*len(s.constraints)+i]; group != none {
			c.take(group)
		}
	}
}

// constraint is one constraint with the clusters taken so far.
type constraint struct {
	label   string
	claim   bool
	maxSkew int
	soft    bool
	reason  string
	// groups numbers the values of the label; without is true if a cluster lacks it.
	groups  map[string]int
	without bool
	// selected counts the clusters by group; with counts the groups by that count.
	selected, with []int
	// smallest and largest are the ends of taken.
	smallest, largest int
}

func newConstraint(wanted framework.SpreadConstraint, fleet *framework.Fleet) *constraint {
	c := &constraint{
		label: wanted.Label, claim: wanted.Claim, maxSkew: wanted.MaxSkew, soft: wanted.Soft, groups: map[string]int{},
		reason: fmt.Sprintf("violated topology spread constraint %q (max skew %d)", wanted.Label, wanted.MaxSkew),
	}
	for i := range fleet.Clusters {
		value, ok := c.valueOf(&fleet.Clusters[i])
		if !ok {
			c.without = true
			continue
		}
		if _, known := c.groups[value]; !known {
			c.groups[value] = len(c.groups)
		}
	}
	c.selected, c.with = make([]int, len(c.groups)), []int{len(c.groups)}
	return c
}

func (c *constraint) groupOf(cluster *framework.Cluster) int {
	if value, ok := c.valueOf(cluster); ok {
		return c.groups[value]
	}
	return none
}

func (c *constraint) valueOf(cluster *framework.Cluster) (string, bool) {
	values := cluster.Labels
	if c.claim {
		values = cluster.Properties
	}
	value, ok := values[c.label]
	return value, ok
}

// ahead is how far ahead of the emptiest group one more cluster brings a group.
func (c *constraint) ahead(group int) int {
	count, smallest := c.selected[group]+1, c.smallest
	if count-1 == smallest && c.with[smallest] == 1 {
		smallest = count // It was the only emptiest group.
	}
	return count - smallest
}

// change is by how much one more cluster of the group changes the skew.
func (c *constraint) change(group int) int {
	switch count := c.selected[group]; {
	case count == c.largest: // Also when all are equal.
		return 1
	case count == c.smallest && c.with[c.smallest] == 1:
		return -1
	}
	return 0
}

// best is the highest score that the constraint can give now.
func (c *constraint) best() int32 {
	evenUp := c.smallest < c.largest && c.with[c.smallest] == 1
	others := len(c.selected) - c.with[c.largest]
	switch {
	case evenUp:
		return 1
	case c.without || others > 0:
		return 0
	}
	return -1
}

func (c *constraint) take(group int) {
	count := c.selected[group]
	c.selected[group]++
	c.with[count]--
	if len(c.with) == count+1 {
		c.with = append(c.with, 0)
	}
	c.with[count+1]++
	c.largest = max(c.largest, count+1)
	if count == c.smallest && c.with[count] == 0 {
		c.smallest++
	}
}
