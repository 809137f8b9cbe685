// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package topologyspread

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"fleetgate.io/fleetgate/pkg/placement/framework"
)

// fleetOf returns clusters a, b, c ... with these regions; "" has no region.
func fleetOf(regions ...string) *framework.Fleet {
	fleet := &framework.Fleet{}
	for i, region := range regions {
		cluster := framework.Cluster{Name: string(rune('a' + i)), Labels: map[string]string{"ring": "1"}}
		if region != "" {
			cluster.Labels["region"] = region
		}
		fleet.Clusters = append(fleet.Clusters, cluster)
	}
	return fleet
}

func TestScore(t *testing.T) {
	hard := func(skew int) []framework.SpreadConstraint {
		return []framework.SpreadConstraint{{Label: "region", MaxSkew: skew}}
	}
	soft := []framework.SpreadConstraint{{Label: "region", MaxSkew: 1, Soft: true}}
	const broken = `violated topology spread constraint "region" (max skew 1)`
	type verdict struct {
		Score  int32
		Reason string
	}
	cases := map[string]struct {
		why         string
		constraints []framework.SpreadConstraint
		fleet       *framework.Fleet
		selected    string // the names of the clusters that have the placement
		want        map[string]verdict
	}{
		"all groups empty": {
			why:         "the first cluster makes its group the fullest",
			constraints: hard(1), fleet: fleetOf("east", "west"),
			want: map[string]verdict{"a": {Score: -1}, "b": {Score: -1}},
		},
		"one group only": {
			why:         "there is nobody to be ahead of, but the skew of an equal spread counts as growing",
			constraints: hard(1), fleet: fleetOf("east", "east"), selected: "a",
			want: map[string]verdict{"b": {Score: -1}},
		},
		"the emptiest group evens out": {
			constraints: hard(1), fleet: fleetOf("east", "east", "west"), selected: "a",
			want: map[string]verdict{"b": {Reason: broken}, "c": {Score: 1}},
		},
		"one of two emptiest groups changes nothing": {
			constraints: hard(1), fleet: fleetOf("east", "west", "north", "east"), selected: "a",
			want: map[string]verdict{"b": {}, "c": {}, "d": {Reason: broken}},
		},
		"a larger skew is allowed when asked for": {
			constraints: hard(2), fleet: fleetOf("east", "east", "west"), selected: "a",
			want: map[string]verdict{"b": {Score: -1}, "c": {Score: 1}},
		},
		"a skew that is too large already refuses what does not help": {
			why:         "the label was changed after clusters had been picked",
			constraints: hard(1), fleet: fleetOf("east", "east", "west", "north", "west"), selected: "abc",
			want: map[string]verdict{"d": {Score: 1, Reason: ""}, "e": {Reason: broken}},
		},
		"a soft constraint costs": {
			constraints: soft, fleet: fleetOf("east", "east", "west"), selected: "a",
			want: map[string]verdict{"b": {Score: -1000}, "c": {Score: 1}},
		},
		"clusters without the label are free": {
			constraints: hard(1), fleet: fleetOf("east", "", "west", "east"), selected: "a",
			want: map[string]verdict{"b": {}, "d": {Reason: broken}},
		},
		"scores of constraints add up": {
			constraints: append(hard(1), framework.SpreadConstraint{Label: "ring", MaxSkew: 5}),
			fleet:       fleetOf("east", "west"), selected: "a",
			want: map[string]verdict{"b": {Score: 0}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			clusters := map[string]*framework.Cluster{}
			for i := range tc.fleet.Clusters {
				clusters[tc.fleet.Clusters[i].Name] = &tc.fleet.Clusters[i]
			}
			var selected []*framework.Cluster
			for _, letter := range tc.selected {
				selected = append(selected, clusters[string(letter)])
			}
			s := Spreader{}.Start(&framework.Policy{Spread: tc.constraints}, tc.fleet, selected)
			got := map[string]verdict{}
			for name := range tc.want {
				score, reason := s.Score(s.Class(clusters[name]))
				got[name] = verdict{score, reason}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nScore() (-want +got):\n%s", tc.why, diff)
			}
		})
	}
}

func TestStart_NilWithoutConstraints(t *testing.T) {
	if s := (Spreader{}).Start(&framework.Policy{}, fleetOf("east"), nil); s != nil {
		t.Errorf("Start() = %v for a policy without constraints", s)
	}
}

func TestClass_SameForSameGroups(t *testing.T) {
	fleet := fleetOf("east", "west", "east", "")
	s := Spreader{}.Start(&framework.Policy{Spread: []framework.SpreadConstraint{{Label: "region", MaxSkew: 1}, {Label: "ring", MaxSkew: 1}}}, fleet, nil)
	var got []int
	for i := range fleet.Clusters {
		got = append(got, s.Class(&fleet.Clusters[i]))
	}
	if diff := cmp.Diff([]int{0, 1, 0, 2}, got); diff != "" {
		t.Errorf("Class() (-want +got):\n%s", diff)
	}
}

func TestBest_IsNotExceeded(t *testing.T) {
	fleet := fleetOf("east", "east", "west", "west", "north", "", "east", "south")
	policy := &framework.Policy{Spread: []framework.SpreadConstraint{{Label: "region", MaxSkew: 2}, {Label: "ring", MaxSkew: 9, Soft: true}}}
	s := Spreader{}.Start(policy, fleet, nil)
	for i := range fleet.Clusters {
		reached := false
		for j := range fleet.Clusters {
			score, reason := s.Score(s.Class(&fleet.Clusters[j]))
			if reason == "" && score > s.Best() {
				t.Errorf("after %d: %s scores %d, the best is said to be %d", i, fleet.Clusters[j].Name, score, s.Best())
			}
			reached = reached || reason == "" && score == s.Best()
		}
		if !reached {
			t.Errorf("after %d: nobody reaches the best of %d, so it saves nothing", i, s.Best())
		}
		s.Take(s.Class(&fleet.Clusters[i]))
	}
}
