// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nearest suggests similar names for a name that does not exist.
package nearest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxShown limits the suggestions.
const maxShown = 3

// Names returns the names that are most similar to the given one, the most similar first; none if
// none is similar.
func Names(given string, names []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	var close []candidate
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		d := distance(given, name)
		// Users often remember only a part of a name.
		if given != "" && strings.Contains(name, given) {
			d = min(d, 1)
		}
		if d <= max(2, len(given)/3) {
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

// NotFound is the error for a name that does not exist, with similar names, or with the command
// that lists the existing ones.
func NotFound(what, given string, names []string, list string) error {
	switch found := Names(given, names); {
	case len(names) == 0:
		return fmt.Errorf("no %s %q: the hub has no %ss", what, given, what)
	case len(found) == 0:
		return fmt.Errorf("no %s %q: list existing ones with %s", what, given, list)
	default:
		return fmt.Errorf("no %s %q: did you mean %s?", what, given, strings.Join(found, ", "))
	}
}

// distance is the Levenshtein distance.
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
