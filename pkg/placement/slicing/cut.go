// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package slicing divides the clusters of a decision into objects, so that a change of one cluster
// changes one object. It is pure and knows no API types: the decisions of every family use it.
package slicing

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

// Size is the maximum number of clusters in a slice.
const Size = 100

// Cut divides clusters into slices, which are indexes into names. Up to a hundred clusters are one
// slice. With more, a cluster stays in its previous slice. New clusters fill gaps, slices that fit into
// one are merged, and the last slice replaces a removed one. So one change writes one or two slices,
// however many there are. Within a slice, clusters have the order of names.
func Cut(names []string, before [][]string) [][]int {
	all := make([]int, len(names))
	for i := range names {
		all[i] = i
	}
	if len(names) <= Size {
		return [][]int{all}
	}
	c := &cutter{wanted: make(map[string]int, len(names))}
	for i, name := range names {
		c.wanted[name] = i
	}
	c.keep(before)
	c.add(names)
	c.merge()
	for _, group := range c.groups {
		slices.Sort(group)
	}
	return c.groups
}

// cutter has slices as indexes during their construction.
type cutter struct {
	// wanted is the position of clusters without a slice.
	wanted map[string]int
	groups [][]int
}

// keep starts with the remaining clusters of the previous slices.
func (c *cutter) keep(before [][]string) {
	kept := sets.New[int]()
	for _, names := range before {
		var group []int
		for _, name := range names {
			if at, ok := c.wanted[name]; ok && !kept.Has(at) && len(group) < Size {
				kept.Insert(at)
				group = append(group, at)
				delete(c.wanted, name)
			}
		}
		c.groups = append(c.groups, group)
	}
	for i := len(c.groups) - 1; i >= 0; i-- {
		if len(c.groups[i]) == 0 {
			c.drop(i)
		}
	}
}

// add puts the other clusters into free space.
func (c *cutter) add(names []string) {
	into := 0
	for i, name := range names {
		if _, missing := c.wanted[name]; !missing {
			continue
		}
		for into < len(c.groups) && len(c.groups[into]) >= Size {
			into++
		}
		if into == len(c.groups) {
			c.groups = append(c.groups, nil)
		}
		c.groups[into] = append(c.groups[into], i)
	}
}

// merge joins the two smallest slices while two of them fit into one.
func (c *cutter) merge() {
	for len(c.groups) > 1 {
		least, next := 0, 1
		if len(c.groups[next]) < len(c.groups[least]) {
			least, next = next, least
		}
		for i := 2; i < len(c.groups); i++ {
			switch n := len(c.groups[i]); {
			case n < len(c.groups[least]):
				least, next = i, least
			case n < len(c.groups[next]):
				next = i
			}
		}
		if len(c.groups[least])+len(c.groups[next]) > Size {
			return
		}
		c.groups[next] = append(c.groups[next], c.groups[least]...)
		c.drop(least)
	}
}

// drop removes a slice, and the last one takes its place.
func (c *cutter) drop(i int) {
	last := len(c.groups) - 1
	c.groups[i] = c.groups[last]
	c.groups = c.groups[:last]
}
