// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"fleetgate.io/fleetgate/pkg/placement/framework"
	"fleetgate.io/fleetgate/pkg/placement/plugins/addonscore"
	"fleetgate.io/fleetgate/pkg/placement/plugins/balance"
	"fleetgate.io/fleetgate/pkg/placement/plugins/steady"
)

func rank(t *testing.T, policy *framework.Policy, fleet *framework.Fleet, scorers ...framework.Weighted) framework.Ranked {
	t.Helper()
	ranked, err := Ranking().Rank(policy, fleet, scorers)
	if err != nil {
		t.Fatal(err)
	}
	return ranked
}

func picked(ranked framework.Ranked) []string {
	var all []string
	for _, place := range ranked.Picked {
		all = append(all, place.Cluster.Name)
	}
	return all
}

func scored(name string, value int64) framework.Cluster {
	return framework.Cluster{Name: name, Scores: map[string]framework.ScoreSheet{"s": {Values: map[string]int64{"v": value}}}}
}

func TestRank_PicksHighestScoreThenSmallerName(t *testing.T) {
	fleet := &framework.Fleet{Now: noon, Clusters: []framework.Cluster{scored("d", 5), scored("b", 7), scored("c", 7), scored("a", 1)}}
	byScore := framework.Weighted{Scorer: addonscore.Scorer{Sheet: "s", Value: "v"}, Weight: 1}
	ranked := rank(t, &framework.Policy{Kind: framework.PickN, Count: 3}, fleet, byScore)
	if got, want := picked(ranked), []string{"b", "c", "d"}; !slices.Equal(got, want) {
		t.Errorf("picked %v, want %v", got, want)
	}
	byScore.Weight = -2
	ranked = rank(t, &framework.Policy{Kind: framework.PickN, Count: 3}, fleet, byScore, framework.Weighted{Scorer: balance.Scorer{}, Weight: 1})
	if got, want := picked(ranked), []string{"a", "d", "b"}; !slices.Equal(got, want) {
		t.Errorf("with a negative weight %v, want %v", got, want)
	}
	if got := ranked.Picked[0]; got.Score != 98 || !slices.Equal(got.Parts, []int64{1, 100}) {
		t.Errorf("a is given %d of %v, want 98 = 100 - 2 x 1", got.Score, got.Parts)
	}
}

func TestCounts(t *testing.T) {
	fleet := &framework.Fleet{Now: noon, Clusters: []framework.Cluster{{Name: "a"}, {Name: "b"}, {Name: "c", Leaving: true}}}
	for name, tc := range map[string]struct {
		policy          framework.Policy
		picked, missing int
	}{
		"all":               {framework.Policy{Kind: framework.PickAll}, 2, 0},
		"as many":           {framework.Policy{Kind: framework.PickN, Count: 2}, 2, 0},
		"fewer":             {framework.Policy{Kind: framework.PickN, Count: 1}, 1, 0},
		"more":              {framework.Policy{Kind: framework.PickN, Count: 5}, 2, 3},
		"none":              {framework.Policy{Kind: framework.PickN}, 0, 0},
		"less than none":    {framework.Policy{Kind: framework.PickN, Count: -3}, 0, 0},
		"none is available": {framework.Policy{Kind: framework.PickN, Count: 1, Within: sets.New[string]()}, 0, 1},
	} {
		ranked := rank(t, &tc.policy, fleet)
		if len(ranked.Picked) != tc.picked || ranked.Missing != tc.missing {
			t.Errorf("%s: %d picked, %d missing, want %d and %d", name, len(ranked.Picked), ranked.Missing, tc.picked, tc.missing)
		}
	}
	if _, err := Ranking().Rank(&framework.Policy{Kind: framework.PickFixed}, fleet, nil); err == nil {
		t.Error("a policy that names its clusters is ranked")
	}
}

func TestRank_ExpiresWithFirstCandidate(t *testing.T) {
	brief, long := time.Minute, time.Hour
	fleet := &framework.Fleet{Now: noon, Clusters: []framework.Cluster{
		{Name: "a", Taints: []framework.Taint{{Key: "x", Effect: "NoSelect", Added: noon}}},
		{Name: "b", Scores: map[string]framework.ScoreSheet{"s": {Until: noon.Add(2 * time.Minute)}}},
		{Name: "refused", Labels: map[string]string{"no": ""}, Scores: map[string]framework.ScoreSheet{"s": {Until: noon.Add(time.Second)}}},
	}}
	policy := &framework.Policy{Kind: framework.PickAll, Tolerations: []framework.Toleration{{Exists: true, For: &long}}, Required: []framework.Term{{Labels: unlabelled(t)}}}
	byScore := framework.Weighted{Scorer: addonscore.Scorer{Sheet: "s", Value: "v"}, Weight: 1}
	if got, want := rank(t, policy, fleet, byScore).Until, noon.Add(2*time.Minute); !got.Equal(want) {
		t.Errorf("until %v, want %v", got, want)
	}
	policy.Tolerations[0].For = &brief
	if got, want := rank(t, policy, fleet, byScore).Until, noon.Add(time.Minute); !got.Equal(want) {
		t.Errorf("until %v, want %v", got, want)
	}
}

func unlabelled(t *testing.T) labels.Selector {
	t.Helper()
	selector, err := labels.Parse("!no")
	if err != nil {
		t.Fatal(err)
	}
	return selector
}

// rankedCase is a random policy for Ranking, with its scorers.
func (d dice) rankedCase() (*framework.Policy, *framework.Fleet, []framework.Weighted) {
	fleet, policy := d.fleet(), d.policy()
	policy.Kind = []framework.Kind{framework.PickAll, framework.PickN}[d.IntN(2)]
	policy.Current = sets.New[string]()
	for i := range fleet.Clusters {
		c := &fleet.Clusters[i]
		c.Decided = d.IntN(5)
		if d.chance(60) {
			c.Scores = map[string]framework.ScoreSheet{"s": {Values: map[string]int64{"v": int64(d.IntN(9))}, Until: noon.Add(time.Duration(d.IntN(3)-1) * time.Second)}}
		}
		if d.chance(20) {
			c.Taints = append(c.Taints, framework.Taint{Key: "t", Effect: "NoSelectIfNew"})
		}
		if d.chance(30) {
			policy.Current.Insert(c.Name)
		}
	}
	return policy, fleet, []framework.Weighted{
		{Scorer: balance.Scorer{}, Weight: int64(d.IntN(21) - 10)}, {Scorer: steady.Scorer{}, Weight: 1},
		{Scorer: addonscore.Scorer{Sheet: "s", Value: "v"}, Weight: 3},
	}
}

func TestProperty_OrderOfClustersDoesNotMatter(t *testing.T) {
	for seed := range uint64(rounds) {
		policy, fleet, scorers := roll(seed).rankedCase()
		want := rank(t, policy, fleet, scorers...)
		other := *fleet
		other.Clusters = slices.Clone(fleet.Clusters)
		rand.New(rand.NewPCG(seed, 2)).Shuffle(len(other.Clusters), func(i, j int) {
			other.Clusters[i], other.Clusters[j] = other.Clusters[j], other.Clusters[i]
		})
		if diff := cmp.Diff(want, rank(t, policy, &other, scorers...)); diff != "" {
			t.Fatalf("seed %d: another order decides otherwise:\n%s", seed, diff)
		}
	}
}

func TestProperty_EachClusterIsReportedOnceAndBestArePicked(t *testing.T) {
	for seed := range uint64(rounds) {
		policy, fleet, scorers := roll(seed).rankedCase()
		ranked := rank(t, policy, fleet, scorers...)
		if got := len(ranked.Picked) + len(ranked.Outscored) + len(ranked.Refusals); got != ranked.Total {
			t.Fatalf("seed %d: %d clusters are reported of %d", seed, got, ranked.Total)
		}
		if len(policy.Spread) > 0 || len(ranked.Picked) == 0 {
			continue
		}
		worst := ranked.Picked[len(ranked.Picked)-1].Score
		for _, place := range ranked.Outscored {
			if place.Score > worst {
				t.Fatalf("seed %d: %s with %d is not picked, and one with %d is", seed, place.Cluster.Name, place.Score, worst)
			}
		}
	}
}

// With one constraint, the spread stays within the limit if that is possible, and no cluster is
// missing that the limit would allow.
func TestProperty_SpreadIsMetIfPossible(t *testing.T) {
	for seed := range uint64(rounds) {
		policy, fleet, scorers := roll(seed).rankedCase()
		for i := range fleet.Clusters {
			fleet.Clusters[i].Taints, fleet.Clusters[i].Leaving = nil, false
			if fleet.Clusters[i].Labels["region"] == "" {
				fleet.Clusters[i].Labels["region"] = "south"
			}
		}
		policy.Required, policy.Kind = nil, framework.PickN
		skew := 1 + int(seed%3)
		policy.Spread = []framework.SpreadConstraint{{Label: "region", MaxSkew: skew, Soft: seed%2 == 0}}
		ranked := rank(t, policy, fleet, scorers...)
		sizes, counts := map[string]int{}, map[string]int{}
		for _, c := range fleet.Clusters {
			sizes[c.Labels["region"]]++
		}
		for _, place := range ranked.Picked {
			counts[place.Cluster.Labels["region"]]++
		}
		// The smallest group limits all others.
		smallest, room, least, most := math.MaxInt, 0, math.MaxInt, 0
		for _, size := range sizes {
			smallest = min(smallest, size)
		}
		for region, size := range sizes {
			room += min(size, smallest+skew)
			least, most = min(least, counts[region]), max(most, counts[region])
		}
		possible := policy.Count <= room
		if (possible || !policy.Spread[0].Soft) && len(ranked.Picked) > 0 && most-least > skew {
			t.Fatalf("seed %d: the skew is %d, want %d at most: %v of %v", seed, most-least, skew, counts, sizes)
		}
		want := min(policy.Count, len(fleet.Clusters))
		if !policy.Spread[0].Soft {
			want = min(want, room)
		}
		if len(ranked.Picked) != want {
			t.Fatalf("seed %d: %d are picked of %v with skew %d, want %d", seed, len(ranked.Picked), sizes, skew, want)
		}
	}
}

func TestRank_ScoresDecideWithinLimits(t *testing.T) {
	at := func(name, region string, score int64) framework.Cluster {
		c := scored(name, score)
		c.Properties = map[string]string{"region": region}
		return c
	}
	fleet := &framework.Fleet{Now: noon, Clusters: []framework.Cluster{
		at("a1", "a", 9), at("a2", "a", 8), at("a3", "a", 7), at("a4", "a", 6), at("b1", "b", 1), at("c1", "c", 2),
	}}
	byScore := framework.Weighted{Scorer: addonscore.Scorer{Sheet: "s", Value: "v"}, Weight: 1}
	for name, tc := range map[string]struct {
		skew, count int
		soft        bool
		want        []string
	}{
		"two ahead":                      {2, 3, false, []string{"a1", "a2", "c1"}},
		"one ahead":                      {1, 3, false, []string{"a1", "c1", "b1"}},
		"more than there can be":         {1, 5, false, []string{"a1", "a2", "c1", "b1"}},
		"more than there can be, softly": {1, 5, true, []string{"a1", "a2", "a3", "c1", "b1"}},
	} {
		policy := &framework.Policy{Kind: framework.PickN, Count: tc.count, Spread: []framework.SpreadConstraint{{Label: "region", Claim: true, MaxSkew: tc.skew, Soft: tc.soft}}}
		if got := picked(rank(t, policy, fleet, byScore)); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestDiagnose_ExplainsRanking(t *testing.T) {
	fleet := &framework.Fleet{Now: noon, Clusters: []framework.Cluster{
		{Name: "a"}, {Name: "b"}, {Name: "c", Labels: map[string]string{"no": ""}}, {Name: "d", Taints: []framework.Taint{{Key: "x", Effect: "NoSelect"}}},
	}}
	policy := &framework.Policy{Kind: framework.PickN, Count: 1, Required: []framework.Term{{Labels: unlabelled(t)}}}
	ranked := rank(t, policy, fleet)
	const want = "1 of 4 clusters fit: 1 lacked label !no, 1 scored lower, 1 tainted x:NoSelect"
	if got := Ranking().Diagnose(policy, fleet, &ranked).String(); got != want {
		t.Errorf("Diagnose() = %q, want %q", got, want)
	}
}
