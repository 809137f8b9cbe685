// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package slicing

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
)

var errWrite = errors.New("the write failed")

// store is a hub with the objects of one decision.
type store struct {
	t        *testing.T
	inSlices map[string][]string
	kept     sets.Set[string]
	writes   int
	// fails decides whether a write fails, and whether it was carried out.
	fails func() (fails, done bool)
}

func (s *store) write(do func()) error {
	s.writes++
	fails, done := s.fails()
	if !fails || done {
		do()
	}
	inSlices := sets.New[string]()
	for _, clusters := range s.inSlices {
		inSlices.Insert(clusters...)
	}
	if missing := s.kept.Difference(inSlices); missing.Len() > 0 {
		s.t.Fatalf("after write %d no slice has %v: %v", s.writes, sets.List(missing), s.inSlices)
	}
	if fails {
		return errWrite
	}
	return nil
}

func (s *store) writer() Writer {
	return Writer{
		Put: func(slice Slice) error { return s.write(func() { s.inSlices[slice.Name] = slice.Clusters }) },
		Park: func(clusters []string) (string, error) {
			name := fmt.Sprintf("parked-%d", s.writes)
			return name, s.write(func() { s.inSlices[name] = clusters })
		},
		Remove: func(name string) error { return s.write(func() { delete(s.inSlices, name) }) },
	}
}

func (s *store) slices() []Slice {
	var all []Slice
	for name, clusters := range s.inSlices {
		all = append(all, Slice{Name: name, Clusters: clusters})
	}
	slices.SortFunc(all, func(a, b Slice) int { return len(a.Name) - len(b.Name) })
	return all
}

// dealtSlices puts clusters randomly into slices.
func dealtSlices(dice *rand.Rand) []Slice {
	all := make([]Slice, 1+dice.IntN(4))
	for i := range all {
		all[i].Name = fmt.Sprintf("slice-%d", i)
	}
	for n := range 12 {
		if dice.IntN(5) > 0 {
			into := &all[dice.IntN(len(all))]
			into.Clusters = append(into.Clusters, fmt.Sprintf("c%02d", n))
		}
	}
	return all
}

func clustersIn(all []Slice) sets.Set[string] {
	inSlices := sets.New[string]()
	for _, s := range all {
		inSlices.Insert(s.Clusters...)
	}
	return inSlices
}

func TestRewrite_EveryClusterIsAlwaysInASlice(t *testing.T) {
	for seed := range uint64(3000) {
		dice := rand.New(rand.NewPCG(seed, 1))
		before, after := dealtSlices(dice), dealtSlices(dice)
		hub := &store{t: t, inSlices: map[string][]string{}, kept: clustersIn(before).Intersection(clustersIn(after))}
		for _, s := range before {
			hub.inSlices[s.Name] = s.Clusters
		}
		failing := seed%2 == 1
		hub.fails = func() (bool, bool) { return failing && dice.IntN(3) == 0, dice.IntN(2) == 0 }
		err := Rewrite(before, after, hub.writer())
		if !failing && err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if failing { // Failed writes are repeated in the next attempt.
			failing = false
			if err := Rewrite(hub.slices(), after, hub.writer()); err != nil {
				t.Fatalf("seed %d, second attempt: %v", seed, err)
			}
		}
		want := map[string][]string{}
		for _, s := range after {
			want[s.Name] = s.Clusters
		}
		if fmt.Sprint(hub.inSlices) != fmt.Sprint(want) {
			t.Fatalf("seed %d: the hub has %v, want %v", seed, hub.inSlices, want)
		}
	}
}

func TestRewrite_WritesGrowingSlicesFirst(t *testing.T) {
	var writes []string
	w := Writer{
		Put:    func(s Slice) error { writes = append(writes, "put "+s.Name); return nil },
		Park:   func([]string) (string, error) { writes = append(writes, "park"); return "spare", nil },
		Remove: func(name string) error { writes = append(writes, "remove "+name); return nil },
	}
	for name, tc := range map[string]struct {
		before, after []Slice
		want          []string
	}{
		"cluster moves to a later slice": {
			before: []Slice{{"0", []string{"a", "b"}}, {"1", []string{"c"}}}, after: []Slice{{"0", []string{"a"}}, {"1", []string{"b", "c"}}},
			want: []string{"put 1", "put 0"},
		},
		"removed slice": {
			before: []Slice{{"0", []string{"a"}}, {"1", []string{"b"}}}, after: []Slice{{"0", []string{"a", "b"}}},
			want: []string{"put 0", "remove 1"},
		},
		"two clusters change places": {
			before: []Slice{{"0", []string{"a"}}, {"1", []string{"b"}}}, after: []Slice{{"0", []string{"b"}}, {"1", []string{"a"}}},
			want: []string{"park", "put 0", "put 1", "remove spare"},
		},
		"cluster leaves": {
			before: []Slice{{"0", []string{"a", "b"}}}, after: []Slice{{"0", []string{"a"}}}, want: []string{"put 0"},
		},
	} {
		writes = nil
		if err := Rewrite(tc.before, tc.after, w); err != nil || !slices.Equal(writes, tc.want) {
			t.Errorf("%s: %v, error %v, want %v", name, writes, err, tc.want)
		}
	}
}
