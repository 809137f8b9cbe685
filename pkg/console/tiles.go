// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"fleetgate.io/fleetgate/pkg/inspect/overview"
)

// Dimensions of the picture of a fleet, in pixels. Each tile has a square place; its side grows with
// the member's number of nodes.
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

// group is the members with one value of the label.
type group struct {
	Label string
	Y     int
	Tiles []tile
}

// picture shows a fleet as tiles.
type picture struct {
	Width, Height int
	Groups        []group
}

// drawn arranges members in rows, grouped by the value of a label.
func drawn(o *overview.Overview, label string) picture {
	tiles := map[string][]tile{}
	for i := range o.Members {
		m := &o.Members[i]
		state := o.State(m)
		t := tile{Name: m.Name, Class: health(&state), Title: m.Name + ": " + cmp.Or(state.Reason, "healthy"), Side: side(state.Nodes)}
		tiles[m.Labels[label]] = append(tiles[m.Labels[label]], t)
	}
	var labels []string
	for value := range tiles {
		labels = append(labels, value)
	}
	slices.Sort(labels)
	p := picture{Width: width}
	perRow := width / place
	for _, value := range labels {
		g := group{Label: cmp.Or(value, "no "+label), Y: p.Height + headHeight - 8, Tiles: tiles[value]}
		if label == "" {
			g.Label = "all members"
		}
		slices.SortFunc(g.Tiles, func(x, y tile) int { return cmp.Compare(x.Name, y.Name) })
		for i := range g.Tiles {
			t := &g.Tiles[i]
			t.X = i%perRow*place + (place-t.Side)/2
			t.Y = p.Height + headHeight + i/perRow*place + (place-t.Side)/2
		}
		p.Height += headHeight + (len(g.Tiles)+perRow-1)/perRow*place + gap
		p.Groups = append(p.Groups, g)
	}
	return p
}

// side grows with the logarithm of the number of nodes, so that 1,000 nodes still fit.
func side(nodes string) int {
	n, err := strconv.Atoi(nodes)
	if err != nil || n < 1 {
		return smallest
	}
	return min(largest, smallest+4+int(2*math.Log2(float64(n))))
}

// health selects the colour and the shape of a tile. Colour is never the only information: the title
// has the reason.
func health(s *overview.MemberState) string {
	switch {
	case s.Reason == "":
		return "healthy"
	case s.Joined == "True" && s.Connected != overview.NotConnected:
		return "degraded"
	}
	return "unreachable"
}
