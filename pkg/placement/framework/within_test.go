// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/util/sets"
)

func TestDecide_WithinExcludesOtherClusters(t *testing.T) {
	clusters := []Cluster{cluster("a", "ok"), cluster("b", "ok"), cluster("c")}
	cases := map[string]struct {
		policy   Policy
		holdings []Holding
		want     Decision
		brief    string
	}{
		"PickAll takes those within": {
			policy: Policy{Kind: PickAll, Within: sets.New("b", "c", "gone")},
			want:   Decision{Add: []string{"b"}, Selected: choices("b"), Fulfilled: true},
			brief:  "1 of 2 clusters fit: 1 lacked label ok",
		},
		"PickN does not make up for what is missing": {
			policy: Policy{Kind: PickN, Count: 2, Within: sets.New("a")},
			want:   Decision{Add: []string{"a"}, Selected: []Choice{scored("a", 0, 0)}},
			brief:  "1 of 1 clusters fit",
		},
		"within none there is nothing": {
			policy: Policy{Kind: PickAll, Within: sets.New[string]()},
			want:   Decision{Fulfilled: true},
			brief:  "0 of 0 clusters fit",
		},
		"what it holds elsewhere it loses": {
			policy:   Policy{Kind: PickN, Count: 1, Within: sets.New("b")},
			holdings: []Holding{{Cluster: "a", State: Bound, Current: true}},
			want:     Decision{Add: []string{"b"}, Drop: []string{"a"}, Selected: []Choice{scored("b", 0, 0)}, Fulfilled: true},
			brief:    "1 of 1 clusters fit",
		},
		"PickFixed tells an outsider from nobody": {
			policy: Policy{Kind: PickFixed, Names: []string{"a", "b", "x"}, Within: sets.New("b", "x")},
			want: Decision{Add: []string{"b"}, Selected: choices("b"), Unselected: []Choice{
				{Cluster: "a", Reason: `"a" is out of bounds`}, {Cluster: "x", Reason: `Specified cluster "x" is not found`}}},
			brief: "1 of 1 clusters fit: 1 named but not in the fleet, 1 named but out of bounds",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fleet, profile := &Fleet{Clusters: clusters}, testProfile(nil)
			got, err := profile.Decide(&tc.policy, fleet, tc.holdings)
			if err != nil {
				t.Fatal(err)
			}
			if brief := profile.Diagnose(&tc.policy, fleet, &got).String(); brief != tc.brief {
				t.Errorf("Diagnose() = %q, want %q", brief, tc.brief)
			}
			ignore := cmpopts.IgnoreFields(Decision{}, "Refusals")
			if diff := cmp.Diff(tc.want, worded(got), ignore, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("Decide() (-want +got):\n%s", diff)
			}
		})
	}
}

// tolerates refuses the taint "full" a minute after it was added.
type tolerates struct{}

func (tolerates) Name() string { return "ForAWhile" }

func (r tolerates) Filter(policy *Policy, fleet *Fleet, c *Cluster) string {
	if len(c.Taints) > 0 && r.Until(policy, fleet, c).IsZero() {
		return "full for too long"
	}
	return ""
}

func (r tolerates) Brief(*Policy, *Fleet, *Cluster) string { return "full for too long" }

func (tolerates) Until(_ *Policy, fleet *Fleet, c *Cluster) time.Time {
	for _, taint := range c.Taints {
		if end := taint.Added.Add(time.Minute); end.After(fleet.Now) {
			return end
		}
	}
	return time.Time{}
}

func TestDecide_ReportsWhenItExpires(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	full := func(name string, ago time.Duration) Cluster {
		c := cluster(name, "ok")
		c.Taints = []Taint{{Key: "full", Added: noon.Add(-ago)}}
		return c
	}
	profile := Profile{Rules: map[Kind][]Rule{PickAll: {lacks("ok"), tolerates{}}}}
	for name, tc := range map[string]struct {
		clusters []Cluster
		want     time.Time
	}{
		"nothing ends":              {clusters: []Cluster{cluster("a", "ok"), full("b", time.Hour)}},
		"the first end counts":      {[]Cluster{full("a", 10*time.Second), full("b", 40*time.Second), full("c", 20*time.Second)}, noon.Add(20 * time.Second)},
		"who is refused before not": {clusters: []Cluster{{Name: "a", Taints: []Taint{{Key: "full", Added: noon}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := profile.Decide(&Policy{Kind: PickAll}, &Fleet{Now: noon, Clusters: tc.clusters}, nil)
			if err != nil || !got.Until.Equal(tc.want) {
				t.Errorf("Until = %v, want %v (error %v)", got.Until, tc.want, err)
			}
		})
	}
}
