// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutstrategy

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// ago is a status that began that many minutes ago.
func ago(state State, minutes int) ClusterRolloutStatus {
	return ClusterRolloutStatus{State: state, Since: now.Add(-time.Duration(minutes) * time.Minute)}
}

func in(minutes int) time.Time { return now.Add(time.Duration(minutes) * time.Minute) }

func group(index int, name string, clusters ...string) Group {
	return Group{Index: index, Name: name, Clusters: clusters}
}

// one is a placement without its own decision groups.
func one(clusters ...string) []Group { return []Group{group(0, "", clusters...)} }

type statuses = map[string]ClusterRolloutStatus

type nextCase struct {
	how      Strategy
	groups   []Group
	statuses statuses
	want     Plan
}

func run(t *testing.T, cases map[string]nextCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Next(tc.how, tc.groups, tc.statuses, now)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("Next() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAll(t *testing.T) {
	run(t, map[string]nextCase{
		"without clusters nothing is to be done": {how: Strategy{Type: All}},
		"an empty type means all of them at once, by name": {
			groups: []Group{group(1, "", "d"), group(0, "", "c", "a")}, want: Plan{Turn: []string{"a", "c", "d"}},
		},
		"only those that have not been given it": {
			how: Strategy{Type: All}, groups: one("a", "b", "c"), statuses: statuses{"a": ago(Pending, 0), "b": ago(Succeeded, 1)},
			want: Plan{Turn: []string{"c"}},
		},
		"independent of the others": {
			how: Strategy{Type: All, MaxFailures: intstr.FromInt32(0)}, groups: one("a", "b", "c"),
			statuses: statuses{"a": ago(Failed, 9), "b": ago(Failed, 9)}, want: Plan{Turn: []string{"c"}},
		},
		"a cluster of two groups gets it once": {
			how: Strategy{Type: All}, groups: []Group{group(0, "", "a"), group(1, "", "a")}, want: Plan{Turn: []string{"a"}},
		},
		"cluster in progress times out at the deadline": {
			how: Strategy{Type: All, Deadline: ptr.To(5 * time.Minute)}, groups: one("a", "b", "c", "d"),
			statuses: statuses{"a": ago(Progressing, 5), "b": ago(Failed, 6), "c": ago(Progressing, 2), "d": ago(Succeeded, 60)},
			want:     Plan{TimedOut: []string{"a", "b"}, Next: in(3)},
		},
		"who has not answered times out too": {
			how: Strategy{Type: All, Deadline: ptr.To(time.Minute)}, groups: one("a", "b"), statuses: statuses{"a": ago(Pending, 60), "b": ago(Pending, 0)},
			want: Plan{TimedOut: []string{"a"}, Next: in(1)},
		},
		"but not if nobody knows since when": {
			how: Strategy{Type: All, Deadline: ptr.To(time.Duration(0))}, groups: one("a"), statuses: statuses{"a": {State: Pending}},
		},
		"without a time the deadline begins now": {
			how: Strategy{Type: All, Deadline: ptr.To(4 * time.Minute)}, groups: one("a"), statuses: statuses{"a": {State: Progressing}},
			want: Plan{Next: in(4)},
		},
		"a deadline of nothing has passed at once": {
			how: Strategy{Type: All, Deadline: ptr.To(time.Duration(0))}, groups: one("a"), statuses: statuses{"a": ago(Progressing, 0)},
			want: Plan{TimedOut: []string{"a"}},
		},
		"a success need not last": {
			how: Strategy{Type: All, MinSuccessTime: time.Hour}, groups: one("a"), statuses: statuses{"a": ago(Succeeded, 0)},
		},
		"statuses of clusters that left do not count": {
			how: Strategy{Type: All, Deadline: ptr.To(time.Minute)}, groups: one("a"), statuses: statuses{"gone": ago(Progressing, 60)},
			want: Plan{Turn: []string{"a"}},
		},
	})
}

func TestProgressive(t *testing.T) {
	two := Strategy{Type: Progressive, MaxConcurrency: intstr.FromInt32(2)}
	with := func(change func(*Strategy)) Strategy {
		how := two
		change(&how)
		return how
	}
	run(t, map[string]nextCase{
		"the first by name": {how: two, groups: one("c", "b", "a"), want: Plan{Turn: []string{"a", "b"}}},
		"no number means all": {
			how: Strategy{Type: Progressive}, groups: one("a", "b", "c"), want: Plan{Turn: []string{"a", "b", "c"}},
		},
		"a number below zero means all": {
			how: Strategy{Type: Progressive, MaxConcurrency: intstr.FromInt32(-1)}, groups: one("a", "b"), want: Plan{Turn: []string{"a", "b"}},
		},
		"a number above all means all": {
			how: Strategy{Type: Progressive, MaxConcurrency: intstr.FromInt32(9)}, groups: one("a", "b"), want: Plan{Turn: []string{"a", "b"}},
		},
		"a percentage is rounded up": {
			how: Strategy{Type: Progressive, MaxConcurrency: intstr.FromString("34%")}, groups: one("a", "b", "c"), want: Plan{Turn: []string{"a", "b"}},
		},
		"a number may be text": {
			how: Strategy{Type: Progressive, MaxConcurrency: intstr.FromString("1")}, groups: one("a", "b", "c"), want: Plan{Turn: []string{"a"}},
		},
		"who has not answered takes room": {
			how: two, groups: one("a", "b", "c"), statuses: statuses{"a": ago(Pending, 60), "b": ago(Pending, 60)},
		},
		"cluster in progress counts for the limit": {
			how: two, groups: one("a", "b", "c", "d"), statuses: statuses{"a": ago(Progressing, 60), "b": ago(Succeeded, 1)},
			want: Plan{Turn: []string{"c"}},
		},
		"who was left out takes none": {
			how: two, groups: one("a", "b", "c", "d"), statuses: statuses{"a": ago(Skipped, 60)}, want: Plan{Turn: []string{"b", "c"}},
		},
		"a success makes room once it has lasted": {
			how: with(func(s *Strategy) { s.MinSuccessTime = 10 * time.Minute }), groups: one("a", "b", "c"),
			statuses: statuses{"a": ago(Succeeded, 4), "b": ago(Succeeded, 10)}, want: Plan{Turn: []string{"c"}, Next: in(6)},
		},
		"one failure stops it where none is tolerated": {
			how: two, groups: one("a", "b", "c"), statuses: statuses{"a": ago(Failed, 1)}, want: Plan{Stopped: true},
		},
		"a failure that is tolerated takes room": {
			how: with(func(s *Strategy) { s.MaxFailures = intstr.FromInt32(1) }), groups: one("a", "b", "c"),
			statuses: statuses{"a": ago(Failed, 1)}, want: Plan{Turn: []string{"b"}},
		},
		"and none any more after the deadline": {
			how: with(func(s *Strategy) {
				s.MaxFailures, s.Deadline = intstr.FromInt32(1), ptr.To(time.Minute)
			}), groups: one("a", "b", "c"),
			statuses: statuses{"a": ago(Failed, 1)}, want: Plan{Turn: []string{"b", "c"}, TimedOut: []string{"a"}},
		},
		"who timed out counts as failed": {
			how: with(func(s *Strategy) { s.Deadline = ptr.To(time.Minute) }), groups: one("a", "b", "c"),
			statuses: statuses{"a": ago(Progressing, 2)}, want: Plan{TimedOut: []string{"a"}, Stopped: true},
		},
		"failures are a percentage of all clusters, rounded up": {
			how: with(func(s *Strategy) { s.MaxFailures = intstr.FromString("10%") }), groups: one("a", "b", "c"),
			statuses: statuses{"a": ago(Failed, 1)}, want: Plan{Turn: []string{"b"}},
		},
		"more failures than clusters tolerate all": {
			how: with(func(s *Strategy) { s.MaxFailures = intstr.FromInt32(9) }), groups: one("a", "b", "c"),
			statuses: statuses{"a": ago(Failed, 1)}, want: Plan{Turn: []string{"b"}},
		},
		"recovered cluster continues": {
			how: two, groups: one("a", "b", "c"), statuses: statuses{"a": ago(Succeeded, 1)}, want: Plan{Turn: []string{"b", "c"}},
		},
	})
}

func TestNext_MandatoryGroupsComeFirst(t *testing.T) {
	groups := []Group{group(0, "rest", "a", "b"), group(1, "canary", "x", "y"), group(2, "early", "m"), group(3, "canary", "z")}
	canaries := Strategy{Type: Progressive, MaxConcurrency: intstr.FromInt32(1), MaxFailures: intstr.FromString("100%"), Mandatory: []GroupName{{Name: "canary"}}}
	byIndex := Strategy{Type: Progressive, Mandatory: []GroupName{{Index: 2}}}
	done := statuses{"x": ago(Succeeded, 9), "y": ago(Succeeded, 9), "z": ago(Succeeded, 9)}
	and := func(more statuses) statuses {
		all := statuses{}
		for _, m := range []statuses{done, more} {
			for k, v := range m {
				all[k] = v
			}
		}
		return all
	}
	soaking := canaries
	soaking.MinSuccessTime = 10 * time.Minute
	late := canaries
	late.Deadline = ptr.To(5 * time.Minute)
	perGroup := canaries
	perGroup.Type = ProgressivePerGroup
	run(t, map[string]nextCase{
		"all of the first that has the name": {how: canaries, groups: groups, want: Plan{Turn: []string{"x", "y"}}},
		"then the next that has it": {
			how: canaries, groups: groups, statuses: statuses{"x": ago(Succeeded, 1), "y": ago(Succeeded, 1)}, want: Plan{Turn: []string{"z"}},
		},
		"then the others, so many at a time": {how: canaries, groups: groups, statuses: done, want: Plan{Turn: []string{"a"}}},
		"a group that only its index names":  {how: byIndex, groups: groups, want: Plan{Turn: []string{"m"}}},
		"a percentage is of the others": {
			how:    Strategy{Type: Progressive, MaxConcurrency: intstr.FromString("50%"), Mandatory: []GroupName{{Name: "canary"}, {Index: 2}}},
			groups: groups, statuses: and(statuses{"m": ago(Succeeded, 1)}), want: Plan{Turn: []string{"a"}},
		},
		"none of them may fail, whatever is tolerated of the others": {
			how: canaries, groups: groups, statuses: statuses{"x": ago(Failed, 1), "y": ago(Succeeded, 1)}, want: Plan{Stopped: true},
		},
		"a failure keeps the rest of its group from its turn": {
			how: canaries, groups: groups, statuses: statuses{"x": ago(Failed, 1)}, want: Plan{Stopped: true},
		},
		"nor may one time out": {
			how: late, groups: groups, statuses: statuses{"x": ago(Progressing, 6), "y": ago(Succeeded, 1)},
			want: Plan{Stopped: true, TimedOut: []string{"x"}},
		},
		"their success has to last": {how: soaking, groups: groups, statuses: done, want: Plan{Next: in(1), Turn: nil}},
		"clusters in progress from an earlier rollout block nobody": {
			how: canaries, groups: groups, statuses: statuses{"a": ago(Failed, 60), "b": ago(Progressing, 60)}, want: Plan{Turn: []string{"x", "y"}},
		},
		"who has not answered holds up the next group": {
			how: canaries, groups: groups, statuses: statuses{"x": ago(Pending, 1), "y": ago(Succeeded, 1)},
		},
		"a group that is not there is passed over": {
			how: Strategy{Type: Progressive, Mandatory: []GroupName{{Name: "nobody"}}}, groups: one("a"), want: Plan{Turn: []string{"a"}},
		},
		"group by group too": {how: perGroup, groups: groups, statuses: done, want: Plan{Turn: []string{"a", "b"}}},
		"group by group, failures stop the rollout": {
			how: perGroup, groups: groups, statuses: statuses{"x": ago(Failed, 1), "y": ago(Succeeded, 1)}, want: Plan{Stopped: true},
		},
	})
}

func TestNext_ProgressivePerGroup(t *testing.T) {
	groups := []Group{group(2, "", "e"), group(0, "", "b", "a"), group(1, "", "c", "d")}
	how := Strategy{Type: ProgressivePerGroup}
	half := Strategy{Type: ProgressivePerGroup, MaxFailures: intstr.FromString("50%")}
	late := half
	late.Deadline = ptr.To(5 * time.Minute)
	soaking := Strategy{Type: ProgressivePerGroup, MinSuccessTime: 5 * time.Minute}
	run(t, map[string]nextCase{
		"the group of the lowest index at once": {how: how, groups: groups, want: Plan{Turn: []string{"a", "b"}}},
		"the next once all of it succeeded": {
			how: how, groups: groups, statuses: statuses{"a": ago(Succeeded, 1), "b": ago(Succeeded, 1)}, want: Plan{Turn: []string{"c", "d"}},
		},
		"not while one is in progress": {
			how: how, groups: groups, statuses: statuses{"a": ago(Succeeded, 1), "b": ago(Progressing, 1)},
		},
		"a cluster that joins a group that is through gets it": {
			how: how, groups: groups, statuses: statuses{"a": ago(Succeeded, 1), "c": ago(Succeeded, 1), "d": ago(Succeeded, 1), "e": ago(Succeeded, 1)},
			want: Plan{Turn: []string{"b"}},
		},
		"not while a success has not lasted": {
			how: soaking, groups: groups, statuses: statuses{"a": ago(Succeeded, 2), "b": ago(Succeeded, 9)}, want: Plan{Next: in(3)},
		},
		"a failure stops it where none is tolerated": {
			how: how, groups: groups, statuses: statuses{"a": ago(Failed, 1), "b": ago(Succeeded, 1)}, want: Plan{Stopped: true},
		},
		"failures are counted in each group": {
			how: half, groups: groups, statuses: statuses{"a": ago(Failed, 1), "b": ago(Succeeded, 1)}, want: Plan{Turn: []string{"c", "d"}},
		},
		"a second one in the group stops it": {
			how: half, groups: groups, statuses: statuses{"a": ago(Failed, 1), "b": ago(Failed, 1)}, want: Plan{Stopped: true},
		},
		"timed out cluster does not replace one in progress": {
			how: late, groups: groups, statuses: statuses{"a": ago(Progressing, 6), "b": ago(Progressing, 1)},
			want: Plan{TimedOut: []string{"a"}, Next: in(4)},
		},
		"one that timed out lets the next group go": {
			how: late, groups: groups, statuses: statuses{"a": ago(Progressing, 6), "b": ago(Succeeded, 1)},
			want: Plan{Turn: []string{"c", "d"}, TimedOut: []string{"a"}},
		},
		"who was left out holds up nobody": {
			how: how, groups: groups, statuses: statuses{"a": ago(Skipped, 1), "b": ago(Skipped, 1)}, want: Plan{Turn: []string{"c", "d"}},
		},
	})
}

func TestNext_RejectsInvalidStrategies(t *testing.T) {
	for name, how := range map[string]Strategy{
		"type":        {Type: "Some"},
		"concurrency": {Type: Progressive, MaxConcurrency: intstr.FromString("few")},
		"failures":    {Type: Progressive, MaxFailures: intstr.FromString("-1%")},
		"per group":   {Type: ProgressivePerGroup, MaxFailures: intstr.FromString("%")},
	} {
		if _, err := Next(how, one("a"), nil, now); err == nil {
			t.Errorf("%s: Next() returned no error", name)
		}
	}
}

func TestParseDeadline_ReadsDurations(t *testing.T) {
	for text, want := range map[string]*time.Duration{
		"": nil, "None": nil, "90s": ptr.To(90 * time.Second), "2h": ptr.To(2 * time.Hour), "0m": ptr.To(time.Duration(0)),
	} {
		got, err := ParseDeadline(text)
		if err != nil || !cmp.Equal(want, got) {
			t.Errorf("ParseDeadline(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"1d", "5", "-1s", "1h30m", "none", "99999999999999999999h"} {
		if got, err := ParseDeadline(text); err == nil {
			t.Errorf("ParseDeadline(%q) = %v, want an error", text, got)
		}
	}
}

// A rollout can be interrupted at any point. The next step follows from the statuses: it is
// deterministic, and the rollout ends.
func TestProperty_RolloutEnds(t *testing.T) {
	groups := []Group{group(0, "canary", "a", "b"), group(1, "", "c", "d", "e"), group(2, "", "f")}
	for name, how := range map[string]Strategy{
		"all": {Type: All}, "two at a time": {Type: Progressive, MaxConcurrency: intstr.FromInt32(2), Mandatory: []GroupName{{Name: "canary"}}},
		"per group": {Type: ProgressivePerGroup},
	} {
		given := statuses{}
		for range 10 {
			plan, err := Next(how, groups, given, now)
			if err != nil {
				t.Fatal(err)
			}
			again, _ := Next(how, groups, given, now)
			if diff := cmp.Diff(plan, again); diff != "" {
				t.Errorf("%s: the second answer is another one:\n%s", name, diff)
			}
			for _, cluster := range plan.Turn {
				if _, before := given[cluster]; before {
					t.Errorf("%s: %s gets it twice", name, cluster)
				}
				given[cluster] = ago(Succeeded, 1)
			}
		}
		if len(given) != 6 {
			t.Errorf("%s: %d of 6 clusters got it", name, len(given))
		}
	}
}
