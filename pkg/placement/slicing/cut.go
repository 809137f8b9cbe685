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
	for _, held := range c.held {
		slices.Sort(held)
	}
	return c.held
}

// cutter has slices as indexes during their construction.
type cutter struct {
	// wanted is the position of clusters without a slice.
	wanted map[string]int
	held   [][]int
}

// keep starts with the remaining clusters of the previous slices.
func (c *cutter) keep(before [][]string) {
	kept := sets.New[int]()
	for _, names := range before {
		var held []int
		for _, name := range names {
			if at, ok := c.wanted[name]; ok && !kept.Has(at) && len(held) < Size {
				kept.Insert(at)
				held = append(held, at)
				delete(c.wanted, name)
			}
		}
		c.held = append(c.held, held)
	}
	for i := len(c.held) - 1; i >= 0; i-- {
		if len(c.held[i]) == 0 {
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
		for into < len(c.held) && len(c.held[into]) >= Size {
			into++
		}
		if into == len(c.held) {
			c.held = append(c.held, nil)
		}
		c.held[into] = append(c.held[into], i)
	}
}

// merge joins the two smallest slices while two of them fit into one.
func (c *cutter) merge() {
	for len(c.held) > 1 {
		least, next := 0, 1
		if len(c.held[next]) < len(c.held[least]) {
			least, next = next, least
		}
		for i := 2; i < len(c.held); i++ {
			switch n := len(c.held[i]); {
			case n < len(c.held[least]):
				least, next = i, least
			case n < len(c.held[next]):
				next = i
			}
		}
		if len(c.held[least])+len(c.held[next]) > Size {
			return
		}
		c.held[next] = append(c.held[next], c.held[least]...)
		c.drop(least)
	}
}

// drop removes a slice, and the last one takes its place.
func (c *cutter) drop(i int) {
	last := len(c.held) - 1
	c.held[i] = c.held[last]
	c.held = c.held[:last]
}
