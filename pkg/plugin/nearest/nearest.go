// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nearest finds what somebody may have meant by a name that is not there.
package nearest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxShown is how many names are proposed.
const maxShown = 3

// Names returns those of the names that are closest to the one that was asked for, the
// closest first; none if none is close.
func Names(asked string, names []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	var close []candidate
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		d := distance(asked, name)
		// A part of a name is what people remember of it.
		if asked != "" && strings.Contains(name, asked) {
			d = min(d, 1)
		}
		if d <= max(2, len(asked)/3) {
			close = append(close, candidate{name, d})
		}
	}
	slices.SortStableFunc(close, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var found []string
	for _, c := range close[:min(len(close), maxShown)] {
		found = append(found, c.name)
	}
	return found
}

// NotFound says that there is no such thing, with the nearest names, or else with the
// command that shows which there are.
func NotFound(what, asked string, names []string, list string) error {
	switch found := Names(asked, names); {
	case len(names) == 0:
		return fmt.Errorf("no %s %q: the hub has none", what, asked)
	case len(found) == 0:
		return fmt.Errorf("no %s %q: see which there are with %s", what, asked, list)
	default:
		return fmt.Errorf("no %s %q: did you mean %s?", what, asked, strings.Join(found, ", "))
	}
}

// distance is how many letters have to be put in, taken out or exchanged.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j]+1, row[j+1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
