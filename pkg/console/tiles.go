// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"fleetgate.io/fleetgate/pkg/plugin/hub"
)

// The picture of a fleet, in pixels: a tile's place is square, and its side says how many
// nodes the member has.
const (
	place      = 22
	smallest   = 8
	largest    = 20
	width      = 1232
	headHeight = 26
	gap        = 14
)

// tile is a member in the picture.
type tile struct {
	Name, Class, Title string
	X, Y, Side         int
}

// bloc is the members that have one value of the label.
type bloc struct {
	Label string
	Y     int
	Tiles []tile
}

// picture is a fleet at one glance.
type picture struct {
	Width, Height int
	Blocs         []bloc
}

// drawn places members in rows, grouped by a label's value.
func drawn(o *hub.Overview, label string) picture {
	groups := map[string][]tile{}
	for i := range o.Members {
		m := &o.Members[i]
		state := o.State(m)
		t := tile{Name: m.Name, Class: health(&state), Title: m.Name + ": " + cmp.Or(state.WhyNot, "well"), Side: side(state.Nodes)}
		groups[m.Labels[label]] = append(groups[m.Labels[label]], t)
	}
	var labels []string
	for value := range groups {
		labels = append(labels, value)
	}
	slices.Sort(labels)
	p := picture{Width: width}
	perRow := width / place
	for _, value := range labels {
		b := bloc{Label: cmp.Or(value, "no "+label), Y: p.Height + headHeight - 8, Tiles: groups[value]}
		if label == "" {
			b.Label = "all members"
		}
		slices.SortFunc(b.Tiles, func(x, y tile) int { return cmp.Compare(x.Name, y.Name) })
		for i := range b.Tiles {
			t := &b.Tiles[i]
			t.X = i%perRow*place + (place-t.Side)/2
			t.Y = p.Height + headHeight + i/perRow*place + (place-t.Side)/2
		}
		p.Height += headHeight + (len(b.Tiles)+perRow-1)/perRow*place + gap
		p.Blocs = append(p.Blocs, b)
	}
	return p
}

// side grows with the logarithm of the nodes: 1,000 nodes are no wall.
func side(nodes string) int {
	n, err := strconv.Atoi(nodes)
	if err != nil || n < 1 {
		return smallest
	}
	return min(largest, smallest+4+int(2*math.Log2(float64(n))))
}

// health is a word for colours, and for people who see none: the title says it too.
func health(s *hub.MemberState) string {
	switch {
	case s.WhyNot == "":
		return "well"
	case s.Joined == "True" && s.Connected != hub.NotConnected:
		return "troubled"
	}
	return "lost"
}
