// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// lacks refuses clusters without a label.
type lacks string

func (lacks) Name() string { return "Label" }

func (l lacks) Filter(_ *Policy, _ *Fleet, c *Cluster) string {
	if _, ok := c.Labels[string(l)]; ok {
		return ""
	}
	return "lacks label " + string(l)
}

func (l lacks) Brief(*Policy, *Fleet, *Cluster) string { return "lacked label " + string(l) }

// silent refuses new placements on clusters with a label.
type silent struct{}

func (silent) Name() string { return "Silent" }

func (silent) AdmitsOnly() {}

func (silent) Filter(_ *Policy, _ *Fleet, c *Cluster) string {
	if _, ok := c.Labels["silent"]; ok {
		return "silent"
	}
	return ""
}

func (silent) Brief(*Policy, *Fleet, *Cluster) string { return "silent" }

func cluster(name string, labels ...string) Cluster {
	c := Cluster{Name: name, Labels: map[string]string{}}
	for _, label := range labels {
		c.Labels[label] = ""
	}
	return c
}

// leaving is a leaving cluster as the rules see it: refused.
func leaving(name string) Cluster {
	c := cluster(name)
	c.Leaving = true
	return c
}

func choices(names ...string) []Choice {
	var all []Choice
	for _, name := range names {
		all = append(all, Selected(name, nil))
	}
	return all
}

func TestDecide(t *testing.T) {
	profile := Profile{Rules: map[Kind][]Rule{PickAll: {lacks("ok"), silent{}}, PickFixed: {lacks("ok")}}}
	cases := map[string]struct {
		reason   string
		policy   Policy
		clusters []Cluster
		holdings []Holding
		want     Decision
	}{
		"PickAll takes what passes": {
			reason:   "a cluster that a rule refuses is not selected, and no decision names it",
			policy:   Policy{Kind: PickAll},
			clusters: []Cluster{cluster("b", "ok"), cluster("c"), cluster("a", "ok")},
			want:     Decision{Add: []string{"a", "b"}, Selected: choices("a", "b"), Fulfilled: true},
		},
		"PickAll without clusters is fulfilled": {
			reason: "there is nothing that it asked for and did not get",
			policy: Policy{Kind: PickAll},
			want:   Decision{Fulfilled: true},
		},
		"PickAll never moves what it placed": {
			reason:   "a current holding is not filtered again",
			policy:   Policy{Kind: PickAll},
			clusters: []Cluster{cluster("a")},
			holdings: []Holding{{Cluster: "a", State: Bound, Current: true}},
			want:     Decision{Selected: choices("a"), Fulfilled: true},
		},
		"PickAll filters again after a policy change": {
			reason:   "a holding of the old policy is adopted when its cluster passes and dropped when not",
			policy:   Policy{Kind: PickAll},
			clusters: []Cluster{cluster("a", "ok"), cluster("b")},
			holdings: []Holding{{Cluster: "a", State: Bound}, {Cluster: "b", State: Scheduled}},
			want:     Decision{Adopt: []string{"a"}, Drop: []string{"b"}, Selected: choices("a"), Fulfilled: true},
		},
		"PickAll keeps what it cannot reach after a policy change": {
			reason:   "an outage does not remove anything; other rules still count",
			policy:   Policy{Kind: PickAll},
			clusters: []Cluster{cluster("a", "ok", "silent"), cluster("b", "silent"), cluster("c", "ok", "silent"), cluster("d", "ok", "silent")},
			holdings: []Holding{{Cluster: "a", State: Bound}, {Cluster: "b", State: Bound}, {Cluster: "c", State: Unscheduled}},
			want:     Decision{Adopt: []string{"a"}, Drop: []string{"b"}, Selected: choices("a"), Fulfilled: true},
		},
		"PickAll resumes what is being withdrawn": {
			reason:   "an unscheduled holding whose cluster passes is adopted again",
			policy:   Policy{Kind: PickAll},
			clusters: []Cluster{cluster("a", "ok"), cluster("b")},
			holdings: []Holding{{Cluster: "a", State: Unscheduled, Current: true}, {Cluster: "b", State: Unscheduled}},
			want:     Decision{Adopt: []string{"a"}, Selected: choices("a"), Fulfilled: true},
		},
		"a cluster waits for its terminating holding": {
			reason:   "one cluster never has two holdings of a placement",
			policy:   Policy{Kind: PickAll},
			clusters: []Cluster{cluster("a", "ok")},
			holdings: []Holding{{Cluster: "a", State: Terminating, Current: true}},
			want:     Decision{Waiting: []string{"a"}, Selected: choices("a"), Fulfilled: true},
		},
		"clusters that left lose the placement": {
			reason:   "leaving or gone, current or not",
			policy:   Policy{Kind: PickAll},
			clusters: []Cluster{leaving("a")},
			holdings: []Holding{{Cluster: "a", State: Bound, Current: true}, {Cluster: "gone", State: Scheduled, Current: true}, {Cluster: "old", State: Unscheduled}},
			want:     Decision{Drop: []string{"a", "gone"}, Fulfilled: true},
		},
		"PickFixed names what it could not get": {
			reason:   "unknown and ineligible clusters are unselected, with the reason",
			policy:   Policy{Kind: PickFixed, Names: []string{"c", "a", "b", "a"}},
			clusters: []Cluster{cluster("a", "ok"), cluster("b"), cluster("d", "ok")},
			want: Decision{Add: []string{"a"}, Selected: choices("a"), Unselected: []Choice{
				{Cluster: "b", Reason: `Cluster "b" is not eligible for resource placement yet: lacks label ok`},
				{Cluster: "c", Reason: `Specified cluster "c" is not found`},
			}},
		},
		"PickFixed keeps a held cluster that is not eligible now": {
			reason:   "eligibility concerns new picks",
			policy:   Policy{Kind: PickFixed, Names: []string{"a", "b"}},
			clusters: []Cluster{cluster("a"), cluster("b")},
			holdings: []Holding{{Cluster: "a", State: Bound, Current: true}, {Cluster: "b", State: Bound}},
			want:     Decision{Adopt: []string{"b"}, Selected: choices("a", "b"), Fulfilled: true},
		},
		"PickFixed drops what is not named any more": {
			policy:   Policy{Kind: PickFixed, Names: []string{"a"}},
			clusters: []Cluster{cluster("a", "ok"), cluster("b", "ok")},
			holdings: []Holding{{Cluster: "a", State: Bound}, {Cluster: "b", State: Bound}},
			want:     Decision{Adopt: []string{"a"}, Drop: []string{"b"}, Selected: choices("a"), Fulfilled: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := profile.Decide(&tc.policy, &Fleet{Clusters: tc.clusters}, tc.holdings)
			if err != nil {
				t.Fatal(err)
			}
			ignore := cmpopts.IgnoreFields(Decision{}, "Refusals")
			if diff := cmp.Diff(tc.want, worded(got), ignore, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nDecide() (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDecide_FailsForKindWithoutRules(t *testing.T) {
	if _, err := (Profile{}).Decide(&Policy{Kind: PickAll}, &Fleet{}, nil); err == nil {
		t.Error("a policy that has no rules must not select anything")
	}
}

func TestDiagnosis_CountsReasons(t *testing.T) {
	cases := map[string]struct {
		policy   Policy
		clusters []Cluster
		want     string
	}{
		"everything fits": {Policy{Kind: PickAll}, []Cluster{cluster("a", "ok")}, "1 of 1 clusters fit"},
		"refusals": {Policy{Kind: PickAll}, []Cluster{cluster("a"), cluster("b", "ok"), cluster("c")},
			"1 of 3 clusters fit: 2 lacked label ok"},
		"the largest number first": {Policy{Kind: PickN, Count: 1}, []Cluster{cluster("a"), cluster("b", "ok"), cluster("c", "ok"), cluster("d", "ok")},
			"1 of 4 clusters fit: 2 scored lower, 1 lacked label ok"},
		"names that nobody has": {Policy{Kind: PickFixed, Names: []string{"a", "x", "y"}}, []Cluster{cluster("a")},
			"0 of 1 clusters fit: 2 named but not in the fleet, 1 lacked label ok"},
	}
	profile := testProfile(nil)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fleet := &Fleet{Clusters: tc.clusters}
			decision, err := profile.Decide(&tc.policy, fleet, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := profile.Diagnose(&tc.policy, fleet, &decision).String(); got != tc.want {
				t.Errorf("Diagnose() = %q, want %q", got, tc.want)
			}
		})
	}
}
