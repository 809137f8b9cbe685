// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package slicing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("c%03d", i)
	}
	return names
}

// cutOf is the result of Cut, as names.
func cutOf(names []string, before [][]string) [][]string {
	var all [][]string
	for _, slice := range Cut(names, before) {
		var group []string
		for _, at := range slice {
			group = append(group, names[at])
		}
		all = append(all, group)
	}
	return all
}

func TestCut_OneChangeWritesOneSlice(t *testing.T) {
	names := numbered(1000)
	before := cutOf(names, nil)
	if len(before) != 10 {
		t.Fatalf("%d slices, want 10", len(before))
	}
	for what, tc := range map[string]struct {
		names []string
		want  int
	}{
		"nothing":              {names, 0},
		"first cluster leaves": {names[1:], 1},
		"new first cluster":    {append([]string{"a"}, names...), 1},
		"replaced cluster":     {append([]string{"a"}, names[1:]...), 1},
		"removed slice":        {slices.Concat(names[:300], names[400:]), 2},
	} {
		after, written := cutOf(tc.names, before), 0
		for i := range max(len(after), len(before)) {
			if i >= len(after) || i >= len(before) || !slices.Equal(after[i], before[i]) {
				written++
			}
		}
		if written != tc.want {
			t.Errorf("%s: %d slices are written, want %d: %v", what, written, tc.want, after)
		}
	}
}

// After any changes, each cluster is in one slice, none has more than a hundred, no two fit into one,
// and within a slice clusters are in order.
func TestCut_EachClusterOnce(t *testing.T) {
	for seed := range uint64(300) {
		dice := rand.New(rand.NewPCG(seed, 1))
		var before [][]string
		for range 12 {
			chance := []int{2, 30, 90, 99}[dice.IntN(4)]
			var names []string
			for _, name := range numbered(600) {
				if dice.IntN(100) < chance {
					names = append(names, name)
				}
			}
			after := cutOf(names, before)
			var all []string
			sizes := make([]int, 0, len(after))
			for _, slice := range after {
				if len(slice) > Size || !slices.IsSorted(slice) {
					t.Fatalf("seed %d: a slice of %d, %v", seed, len(slice), slice)
				}
				all, sizes = append(all, slice...), append(sizes, len(slice))
			}
			slices.Sort(all)
			if !slices.Equal(all, names) {
				t.Fatalf("seed %d: clusters %v are in slices, want %v", seed, all, names)
			}
			if slices.Sort(sizes); len(sizes) > 1 && sizes[0]+sizes[1] <= Size {
				t.Fatalf("seed %d: slices of %v could be fewer", seed, sizes)
			}
			before = after
		}
	}
}

// After few changes, remaining clusters stay in their slice.
func TestCut_ClustersStayInTheirSlice(t *testing.T) {
	for seed := range uint64(100) {
		dice := rand.New(rand.NewPCG(seed, 2))
		before := cutOf(numbered(600), nil)
		at := map[string]int{}
		for i, slice := range before {
			for _, name := range slice {
				at[name] = i
			}
		}
		var names []string
		for _, name := range numbered(600) {
			if dice.IntN(100) > 5 {
				names = append(names, name)
			}
		}
		for i, slice := range cutOf(names, before) {
			for _, name := range slice {
				if at[name] != i {
					t.Fatalf("seed %d: %s went from slice %d to %d", seed, name, at[name], i)
				}
			}
		}
	}
}
