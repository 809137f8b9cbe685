// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"fleetgate.io/fleetgate/pkg/placement/framework"
)

// sliceSize is how many clusters a PlacementDecision has at most.
const sliceSize = 100

// slicesOf cuts a group into what single PlacementDecisions hold. Those of up to a hundred
// clusters are one. Beyond, a cluster stays in the slice where it is, of those that the
// group had; new ones fill gaps, slices that fit into one are merged, and the last takes
// the place of one that is gone. So one change writes one slice or two, however many there
// are. Within a slice, clusters keep the order of the group.
func slicesOf(places []framework.Place, before [][]string, byScore bool) [][]framework.Place {
	if len(places) <= sliceSize {
		return [][]framework.Place{places}
	}
	if byScore {
		// Their order goes on from slice to slice.
		return slices.Collect(slices.Chunk(places, sliceSize))
	}
	c := &cutter{wanted: make(map[string]int, len(places))}
	for i := range places {
		c.wanted[places[i].Cluster.Name] = i
	}
	c.keep(before)
	c.add(places)
	c.merge()
	cut := make([][]framework.Place, len(c.held))
	for i, held := range c.held {
		slices.Sort(held)
		for _, at := range held {
			cut[i] = append(cut[i], places[at])
		}
	}
	return cut
}

// cutter holds slices as indexes into the group while they are being made.
type cutter struct {
	// wanted is where a cluster of the group stands in it.
	wanted map[string]int
	held   [][]int
}

// keep begins with what stays of the slices that were there.
func (c *cutter) keep(before [][]string) {
	kept := sets.New[int]()
	for _, names := range before {
		var held []int
		for _, name := range names {
			if at, ok := c.wanted[name]; ok && !kept.Has(at) && len(held) < sliceSize {
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

// add puts the others where there is room.
func (c *cutter) add(places []framework.Place) {
	into := 0
	for i := range places {
		if _, missing := c.wanted[places[i].Cluster.Name]; !missing {
			continue
		}
		for into < len(c.held) && len(c.held[into]) >= sliceSize {
			into++
		}
		if into == len(c.held) {
			c.held = append(c.held, nil)
		}
		c.held[into] = append(c.held[into], i)
	}
}

// merge puts two slices together as long as there are two that fit into one: the smallest
// ones.
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
		if len(c.held[least])+len(c.held[next]) > sliceSize {
			return
		}
		c.held[next] = append(c.held[next], c.held[least]...)
		c.drop(least)
	}
}

// drop takes a slice away, and the last one takes its place.
func (c *cutter) drop(i int) {
	last := len(c.held) - 1
	c.held[i] = c.held[last]
	c.held = c.held[:last]
}

// byNumber orders names of PlacementDecisions by the number at their end.
func byNumber(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
