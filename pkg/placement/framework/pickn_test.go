// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// ranks is a Ranker with a fixed list.
type ranks map[string]int32

func (r ranks) Rank(*Policy, *Fleet) func(*Cluster) int32 {
	return func(c *Cluster) int32 { return r[c.Name] }
}

// oneOfEach is a Spreader that takes each label at most once, and prefers labels in the order of
// their length.
type oneOfEach struct{}

func (oneOfEach) Name() string { return "OneOfEach" }

func (oneOfEach) Start(policy *Policy, _ *Fleet, selected []*Cluster) Spread {
	if len(policy.Spread) == 0 {
		return nil
	}
	s := &each{selected: map[int]bool{}}
	for _, c := range selected {
		s.Take(s.Class(c))
	}
	return s
}

type each struct{ selected map[int]bool }

func (*each) Class(c *Cluster) int { return len(c.Labels) }

func (s *each) Score(class int) (int32, string) {
	if s.selected[class] {
		return 0, "one is enough"
	}
	return int32(class), ""
}

func (*each) Best() int32 { return 100 }

func (s *each) Take(class int) { s.selected[class] = true }

func testProfile(r ranks) Profile {
	rules := []Rule{lacks("ok"), silent{}}
	return Profile{Rules: map[Kind][]Rule{PickAll: rules, PickN: rules, PickFixed: rules}, Affinity: r, Spread: oneOfEach{}}
}

func scored(name string, affinity, spread int32) Choice {
	return Selected(name, &Score{Affinity: affinity, Spread: spread})
}

func lower(name, reason string, affinity, spread int32) Choice {
	return Choice{Cluster: name, Reason: reason, Score: &Score{Affinity: affinity, Spread: spread}}
}

func TestPickN_SelectsBest(t *testing.T) {
	holding := func(name string, state State, current bool, score *Score) Holding {
		return Holding{Cluster: name, State: state, Current: current, Score: score}
	}
	zero, high := &Score{}, &Score{Affinity: 10}
	all := []Cluster{cluster("a", "ok"), cluster("b", "ok"), cluster("c", "ok"), cluster("d")}
	spread := []SpreadConstraint{{Label: "any"}}
	cases := map[string]struct {
		why      string
		count    int
		ranks    ranks
		spread   []SpreadConstraint
		clusters []Cluster
		holdings []Holding
		want     Decision
	}{
		"ties go to the larger name": {
			why:   "clients rely on it",
			count: 2, clusters: all,
			want: Decision{Add: []string{"b", "c"}, Selected: []Choice{scored("b", 0, 0), scored("c", 0, 0)}, Fulfilled: true, Unselected: []Choice{
				lower("a", `Cluster "a" does not score high enough (affinity score: 0, topology spread score: 0)`, 0, 0),
				{Cluster: "d", Reason: "ClusterUnschedulable, lacks label ok"},
			}},
		},
		"the highest affinity wins": {
			count: 1, clusters: all, ranks: ranks{"a": 5, "b": 20, "c": -1},
			want: Decision{Add: []string{"b"}, Selected: []Choice{scored("b", 20, 0)}, Fulfilled: true, Unselected: []Choice{
				lower("a", `Cluster "a" does not score high enough (affinity score: 5, topology spread score: 0)`, 5, 0),
				lower("c", `Cluster "c" does not score high enough (affinity score: -1, topology spread score: 0)`, -1, 0),
				{Cluster: "d", Reason: "ClusterUnschedulable, lacks label ok"},
			}},
		},
		"too few clusters": {
			why:   "eligible clusters are selected, and the missing number is reported",
			count: 4, clusters: all,
			want: Decision{Add: []string{"a", "b", "c"}, Selected: []Choice{scored("a", 0, 0), scored("b", 0, 0), scored("c", 0, 0)},
				Unselected: []Choice{{Cluster: "d", Reason: "ClusterUnschedulable, lacks label ok"}}},
		},
		"none wanted": {
			count: 0, clusters: all, holdings: []Holding{holding("a", Bound, true, zero)},
			want: Decision{Drop: []string{"a"}, Fulfilled: true, Settled: true},
		},
		"scaling out keeps what there is": {
			why:   "even if others would score higher now",
			count: 2, clusters: all, ranks: ranks{"b": 50, "c": 100}, holdings: []Holding{holding("a", Bound, true, zero)},
			want: Decision{Add: []string{"c"}, Selected: []Choice{scored("a", 0, 0), scored("c", 100, 0)}, Fulfilled: true, Unselected: []Choice{
				lower("b", `Cluster "b" does not score high enough (affinity score: 50, topology spread score: 0)`, 50, 0),
				{Cluster: "d", Reason: "ClusterUnschedulable, lacks label ok"},
			}},
		},
		"enough is enough": {
			why:   "nobody else is looked at, and a cluster that would be refused today stays",
			count: 2, clusters: all, holdings: []Holding{holding("a", Bound, true, high), holding("d", Scheduled, true, zero)},
			want: Decision{Selected: []Choice{scored("a", 10, 0), scored("d", 0, 0)}, Fulfilled: true, Settled: true},
		},
		"scaling in drops what is not sent yet first": {
			why:   "then the lowest score, then the smaller name",
			count: 1, clusters: all, holdings: []Holding{holding("a", Bound, true, zero), holding("b", Bound, true, zero), holding("c", Scheduled, true, high)},
			want: Decision{Drop: []string{"a", "c"}, Selected: []Choice{scored("b", 0, 0)}, Fulfilled: true, Settled: true},
		},
		"scaling in drops the lowest score": {
			count: 1, clusters: all, holdings: []Holding{holding("a", Bound, true, high), holding("b", Bound, true, zero), holding("c", Bound, true, nil)},
			want: Decision{Drop: []string{"b", "c"}, Selected: []Choice{scored("a", 10, 0)}, Fulfilled: true, Settled: true},
		},
		"a policy change keeps clusters that are as good as others": {
			why:   "stickiness breaks ties before the name does",
			count: 1, clusters: all, holdings: []Holding{holding("a", Bound, false, zero)},
			want: Decision{Adopt: []string{"a"}, Selected: []Choice{scored("a", 0, 0)}, Fulfilled: true, Unselected: []Choice{
				lower("c", `Cluster "c" does not score high enough (affinity score: 0, topology spread score: 0)`, 0, 0),
				lower("b", `Cluster "b" does not score high enough (affinity score: 0, topology spread score: 0)`, 0, 0),
				{Cluster: "d", Reason: "ClusterUnschedulable, lacks label ok"},
			}},
		},
		"a policy change does not move what it cannot reach": {
			why:   "an outage does not remove anything; only a better cluster does",
			count: 2, clusters: []Cluster{cluster("a", "ok", "silent"), cluster("b", "ok", "silent"), cluster("c", "ok"), cluster("d", "ok", "silent")},
			ranks:    ranks{"c": 1},
			holdings: []Holding{holding("a", Bound, false, zero), holding("b", Scheduled, false, zero)},
			want: Decision{Add: []string{"c"}, Adopt: []string{"b"}, Drop: []string{"a"}, Selected: []Choice{scored("b", 0, 0), scored("c", 1, 0)},
				Fulfilled: true, Unselected: []Choice{
					lower("a", `Cluster "a" does not score high enough (affinity score: 0, topology spread score: 0)`, 0, 0),
					{Cluster: "d", Reason: "ClusterUnschedulable, silent"},
				}},
		},
		"a policy change moves to better ones": {
			count: 1, clusters: all, ranks: ranks{"c": 1}, holdings: []Holding{holding("a", Bound, false, zero)},
			want: Decision{Add: []string{"c"}, Drop: []string{"a"}, Selected: []Choice{scored("c", 1, 0)}, Fulfilled: true, Unselected: []Choice{
				lower("a", `Cluster "a" does not score high enough (affinity score: 0, topology spread score: 0)`, 0, 0),
				lower("b", `Cluster "b" does not score high enough (affinity score: 0, topology spread score: 0)`, 0, 0),
				{Cluster: "d", Reason: "ClusterUnschedulable, lacks label ok"},
			}},
		},
		"remains of an earlier policy go when there are enough": {
			count: 1, clusters: all, holdings: []Holding{holding("a", Bound, false, zero), holding("b", Bound, true, zero)},
			want: Decision{Drop: []string{"a"}, Selected: []Choice{scored("b", 0, 0)}, Fulfilled: true, Settled: true},
		},
		"withdrawn holding is adopted again": {
			count: 1, clusters: all[2:], holdings: []Holding{holding("c", Unscheduled, true, zero)},
			want: Decision{Adopt: []string{"c"}, Selected: []Choice{scored("c", 0, 0)}, Fulfilled: true,
				Unselected: []Choice{{Cluster: "d", Reason: "ClusterUnschedulable, lacks label ok"}}},
		},
		"a cluster that left is replaced": {
			count: 2, clusters: all[:2], holdings: []Holding{holding("gone", Bound, true, zero), holding("a", Bound, true, zero)},
			want: Decision{Add: []string{"b"}, Drop: []string{"gone"}, Selected: []Choice{scored("a", 0, 0), scored("b", 0, 0)}, Fulfilled: true},
		},
		"a terminating holding is waited for": {
			count: 1, clusters: all[:1], holdings: []Holding{holding("a", Terminating, true, zero)},
			want: Decision{Waiting: []string{"a"}, Selected: []Choice{scored("a", 0, 0)}, Fulfilled: true},
		},
		"the spread counts before affinity": {
			why:   "c has the more labels, which the test's spread likes; b is of a's class and not wanted any more after a",
			count: 3, spread: spread, ranks: ranks{"a": 10, "b": 5},
			clusters: []Cluster{cluster("a", "ok"), cluster("b", "ok"), cluster("c", "ok", "x")},
			want: Decision{Add: []string{"a", "c"}, Selected: []Choice{scored("a", 10, 1), scored("c", 0, 2)},
				Unselected: []Choice{{Cluster: "b", Reason: "ClusterUnschedulable, one is enough"}}},
		},
		"the spread starts from the current clusters": {
			count: 2, spread: spread, holdings: []Holding{holding("a", Bound, true, zero)},
			clusters: []Cluster{cluster("a", "ok"), cluster("b", "ok"), cluster("c", "ok", "x")},
			want: Decision{Add: []string{"c"}, Selected: []Choice{scored("a", 0, 0), scored("c", 0, 2)}, Fulfilled: true,
				Unselected: []Choice{{Cluster: "b", Reason: "ClusterUnschedulable, one is enough"}}},
		},
		"scores of the others are those of the last round": {
			why:   "before the last cluster was selected",
			count: 1, spread: spread, clusters: []Cluster{cluster("a", "ok"), cluster("b", "ok")},
			want: Decision{Add: []string{"b"}, Selected: []Choice{scored("b", 0, 1)}, Fulfilled: true,
				Unselected: []Choice{lower("a", `Cluster "a" does not score high enough (affinity score: 0, topology spread score: 1)`, 0, 1)}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			policy := &Policy{Kind: PickN, Count: tc.count, Spread: tc.spread}
			got, err := testProfile(tc.ranks).Decide(policy, &Fleet{Clusters: tc.clusters}, tc.holdings)
			if err != nil {
				t.Fatal(err)
			}
			ignore := cmpopts.IgnoreFields(Decision{}, "Refusals", "Outscored")
			if diff := cmp.Diff(tc.want, worded(got), ignore, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nDecide() (-want +got):\n%s", tc.why, diff)
			}
		})
	}
}

func TestPickN_LimitsUnselected(t *testing.T) {
	profile := testProfile(nil)
	profile.MaxUnselected = 2
	clusters := []Cluster{cluster("a", "ok"), cluster("b", "ok"), cluster("c"), cluster("d"), cluster("e", "ok")}
	for count, want := range map[int][]string{1: {"b", "a"}, 2: {"a", "c"}, 3: {"c", "d"}} {
		for _, spread := range [][]SpreadConstraint{nil, {{Label: "any"}}} {
			if spread != nil && count > 1 {
				continue // The test's spread allows only one of each.
			}
			policy := &Policy{Kind: PickN, Count: count, Spread: spread}
			got, err := profile.Decide(policy, &Fleet{Clusters: clusters}, nil)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, u := range got.Unselected {
				names = append(names, u.Cluster)
			}
			if diff := cmp.Diff(want, names); diff != "" {
				t.Errorf("%d of %d, spread %v (-want +got):\n%s", count, len(clusters), spread, diff)
			}
			if got.Outscored != 3-count || len(got.Refusals) != 2 {
				t.Errorf("%d outscored and %d refused, all have to be counted", got.Outscored, len(got.Refusals))
			}
		}
	}
}

func TestDiagnosis_LimitsReasons(t *testing.T) {
	d := Diagnosis{Total: 30, Selected: 1}
	for range maxReasons + 3 {
		d.Others = append(d.Others, Count{Clusters: 2, Reason: "x"})
	}
	const want = "1 of 30 clusters fit: 2 x, 2 x, 2 x, 2 x, 2 x, 2 x, 2 x, 2 x, 2 x, 2 x, 6 for other reasons"
	if d.String() != want {
		t.Errorf("String() = %q, want %q", d, want)
	}
}

func TestFirst(t *testing.T) {
	compare := func(a, b int) int { return a - b }
	for n, want := range map[int][]int{0: nil, 1: {0}, 3: {0, 1, 2}, 7: {0, 1, 2, 3, 4, 5, 6}, 9: {0, 1, 2, 3, 4, 5, 6}} {
		for _, s := range [][]int{{0, 1, 2, 3, 4, 5, 6}, {6, 5, 4, 3, 2, 1, 0}, {3, 0, 6, 1, 5, 2, 4}} {
			all := slices.Clone(s)
			if diff := cmp.Diff(want, first(all, n, compare), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("first %d of %v (-want +got):\n%s", n, s, diff)
			}
			slices.Sort(all)
			if diff := cmp.Diff([]int{0, 1, 2, 3, 4, 5, 6}, all); diff != "" {
				t.Errorf("first %d of %v loses elements (-want +got):\n%s", n, s, diff)
			}
		}
	}
}
