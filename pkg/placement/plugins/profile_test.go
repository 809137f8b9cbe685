// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/labels"

	"fleetgate.io/fleetgate/pkg/placement/framework"
	"fleetgate.io/fleetgate/pkg/placement/plugins/clustereligibility"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// rounds is the number of random cases for each property.
const rounds = 500

// dice creates random cases; the same seed creates the same ones.
type dice struct{ *rand.Rand }

func roll(seed uint64) dice { return dice{rand.New(rand.NewPCG(seed, 1))} }

func (d dice) chance(percent int) bool { return d.IntN(100) < percent }

func (d dice) fleet() *framework.Fleet {
	fleet := &framework.Fleet{Now: noon}
	for i := range d.IntN(25) {
		fleet.Clusters = append(fleet.Clusters, d.cluster(fmt.Sprintf("c-%02d", i)))
	}
	return fleet
}

func (d dice) cluster(name string) framework.Cluster {
	c := framework.Cluster{Name: name, Labels: map[string]string{}, Properties: map[string]string{}}
	c.Agent = framework.Agent{Reported: true, Joined: true, Health: framework.Healthy, LastHeartbeat: noon}
	if d.chance(90) {
		c.Labels["region"] = []string{"east", "west", "north"}[d.IntN(3)]
	}
	if d.chance(70) {
		c.Labels["env"] = "prod"
	}
	if d.chance(80) {
		c.Properties["nodes"] = fmt.Sprint(d.IntN(10))
	}
	if d.chance(15) {
		c.Taints = []framework.Taint{{Key: "full", Effect: "NoSchedule"}}
	}
	if d.chance(10) {
		c.Agent.LastHeartbeat = noon.Add(-time.Hour)
	}
	c.Leaving = d.chance(5)
	return c
}

func (d dice) policy() *framework.Policy {
	p := &framework.Policy{Kind: framework.PickN, Count: d.IntN(12)}
	if d.chance(50) {
		p.Required = []framework.Term{{Labels: labels.SelectorFromSet(labels.Set{"env": "prod"})}}
	}
	if d.chance(50) {
		p.Preferred = []framework.Preference{{Weight: int32(d.IntN(201) - 100), SortBy: "nodes", Ascending: d.chance(50)}}
	}
	if d.chance(50) {
		p.Spread = []framework.SpreadConstraint{{Label: "region", MaxSkew: 1 + d.IntN(2), Soft: d.chance(50)}}
	}
	if d.chance(30) {
		p.Tolerations = []framework.Toleration{{Key: "full", Exists: true}}
	}
	return p
}

func (d dice) holdings(fleet *framework.Fleet) []framework.Holding {
	states := []framework.State{framework.Scheduled, framework.Bound, framework.Unscheduled, framework.Terminating}
	holdings := []framework.Holding{{Cluster: "gone", State: framework.Bound, Current: true}}
	for _, c := range fleet.Clusters {
		if !d.chance(40) {
			continue
		}
		h := framework.Holding{Cluster: c.Name, State: states[d.IntN(len(states))], Current: d.chance(70)}
		if d.chance(80) {
			h.Score = &framework.Score{Affinity: int32(d.IntN(10)), Spread: int32(d.IntN(3) - 1)}
		}
		holdings = append(holdings, h)
	}
	return holdings
}

func decide(t *testing.T, policy *framework.Policy, fleet *framework.Fleet, holdings []framework.Holding) framework.Decision {
	t.Helper()
	decision, err := Profile(clustereligibility.Rule{}).Decide(policy, fleet, holdings)
	if err != nil {
		t.Fatal(err)
	}
	return decision
}

// carriedOut is the holdings once a decision has been carried out, and all drops are finished.
func carriedOut(decision framework.Decision) []framework.Holding {
	var holdings []framework.Holding
	for _, s := range decision.Selected {
		holdings = append(holdings, framework.Holding{Cluster: s.Cluster, State: framework.Bound, Current: true, Score: s.Score})
	}
	return holdings
}

func names(choices []framework.Choice) []string {
	var all []string
	for _, c := range choices {
		all = append(all, c.Cluster)
	}
	return all
}

func TestProperty_SameInputGivesSameDecision(t *testing.T) {
	for seed := range uint64(rounds) {
		d := roll(seed)
		fleet, policy := d.fleet(), d.policy()
		holdings := d.holdings(fleet)
		first := decide(t, policy, fleet, holdings)
		d.Shuffle(len(fleet.Clusters), func(i, j int) {
			fleet.Clusters[i], fleet.Clusters[j] = fleet.Clusters[j], fleet.Clusters[i]
		})
		d.Shuffle(len(holdings), func(i, j int) { holdings[i], holdings[j] = holdings[j], holdings[i] })
		if diff := cmp.Diff(first, decide(t, policy, fleet, holdings)); diff != "" {
			t.Fatalf("seed %d: another order of the same input changes the decision (-first +second):\n%s", seed, diff)
		}
	}
}

func TestProperty_DecisionIsSound(t *testing.T) {
	for seed := range uint64(rounds) {
		d := roll(seed)
		fleet, policy := d.fleet(), d.policy()
		holdings := d.holdings(fleet)
		got := decide(t, policy, fleet, holdings)
		selected := names(got.Selected)
		if len(selected) > policy.Count {
			t.Fatalf("seed %d: %d clusters selected, %d wanted", seed, len(selected), policy.Count)
		}
		if got.Fulfilled != (len(selected) == policy.Count) {
			t.Fatalf("seed %d: Fulfilled = %t with %d of %d", seed, got.Fulfilled, len(selected), policy.Count)
		}
		before := map[string]framework.Holding{}
		for _, h := range holdings {
			before[h.Cluster] = h
		}
		for _, name := range got.Add {
			if _, current := before[name]; current {
				t.Fatalf("seed %d: %s is added although it has a holding", seed, name)
			}
		}
		for name, h := range before {
			is := slices.Contains(selected, name)
			goes := slices.Contains(got.Drop, name)
			had := h.State == framework.Scheduled || h.State == framework.Bound
			if goes == is && had || goes && !had {
				t.Fatalf("seed %d: %s was %+v, is selected: %t, dropped: %t", seed, name, h, is, goes)
			}
		}
		for _, c := range fleet.Clusters {
			if c.Leaving && slices.Contains(selected, c.Name) {
				t.Fatalf("seed %d: %s is selected although it leaves", seed, c.Name)
			}
		}
	}
}

func TestProperty_DecisionIsStable(t *testing.T) {
	for seed := range uint64(rounds) {
		d := roll(seed)
		fleet, policy := d.fleet(), d.policy()
		first := decide(t, policy, fleet, d.holdings(fleet))
		second := decide(t, policy, fleet, carriedOut(first))
		if changes := len(second.Add) + len(second.Adopt) + len(second.Drop); changes > 0 {
			t.Fatalf("seed %d: deciding again changes %+v", seed, second)
		}
		if diff := cmp.Diff(first.Selected, second.Selected); diff != "" {
			t.Fatalf("seed %d: deciding again selects others (-first +second):\n%s", seed, diff)
		}
	}
}

func TestProperty_OutageNeverDrops(t *testing.T) {
	for seed := range uint64(rounds) {
		d := roll(seed)
		fleet, policy := d.fleet(), d.policy()
		policy.Kind = framework.PickAll
		holdings := d.holdings(fleet)
		before := decide(t, policy, fleet, holdings)
		for i := range fleet.Clusters {
			fleet.Clusters[i].Agent.LastHeartbeat = noon.Add(-time.Hour)
		}
		during := decide(t, policy, fleet, holdings)
		if diff := cmp.Diff(before.Drop, during.Drop); diff != "" {
			t.Fatalf("seed %d: an outage changes what is dropped (-before +during):\n%s", seed, diff)
		}
	}
}

func TestProperty_ScaleOutNeverMoves(t *testing.T) {
	for seed := range uint64(rounds) {
		d := roll(seed)
		fleet, policy := d.fleet(), d.policy()
		small := decide(t, policy, fleet, nil)
		policy.Count += 1 + d.IntN(4)
		large := decide(t, policy, fleet, carriedOut(small))
		if len(large.Drop)+len(large.Adopt) > 0 {
			t.Fatalf("seed %d: a scale-out touches %v and %v", seed, large.Drop, large.Adopt)
		}
		for _, name := range names(small.Selected) {
			if !slices.Contains(names(large.Selected), name) {
				t.Fatalf("seed %d: a scale-out loses %s", seed, name)
			}
		}
	}
}

// skew is how uneven the regions are.
func skew(fleet *framework.Fleet, selected []string) int {
	counts := map[string]int{}
	for _, c := range fleet.Clusters {
		region, ok := c.Labels["region"]
		if !ok {
			continue
		}
		counts[region] += 0
		if slices.Contains(selected, c.Name) {
			counts[region]++
		}
	}
	smallest, largest := len(selected), 0
	for _, n := range counts {
		smallest, largest = min(smallest, n), max(largest, n)
	}
	return max(0, largest-smallest)
}

func TestProperty_SkewStaysWithinLimit(t *testing.T) {
	met := 0
	for seed := range uint64(rounds) {
		d := roll(seed)
		fleet, policy := d.fleet(), d.policy()
		limit := 1 + d.IntN(3)
		policy.Spread = []framework.SpreadConstraint{{Label: "region", MaxSkew: limit}}
		hard := decide(t, policy, fleet, nil)
		if got := skew(fleet, names(hard.Selected)); got > limit {
			t.Fatalf("seed %d: skew %d of %v, %d is allowed", seed, got, names(hard.Selected), limit)
		}
		if !hard.Fulfilled {
			continue
		}
		met++
		policy.Spread[0].Soft = true
		soft := decide(t, policy, fleet, nil)
		if diff := cmp.Diff(names(hard.Selected), names(soft.Selected), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("seed %d: the limit can be met, and the soft one is not kept (-hard +soft):\n%s", seed, diff)
		}
	}
	if met == 0 {
		t.Error("the limit could never be met: this test tries the wrong fleets")
	}
}

func TestDiagnosis_Sentence(t *testing.T) {
	cluster := func(name string, change func(*framework.Cluster)) framework.Cluster {
		c := framework.Cluster{Name: name, Labels: map[string]string{"env": "prod", "region": "east"}, Properties: map[string]string{"nodes": "3"},
			Agent: framework.Agent{Reported: true, Joined: true, Health: framework.Healthy, LastHeartbeat: noon}}
		if change != nil {
			change(&c)
		}
		return c
	}
	fleet := &framework.Fleet{Now: noon, Clusters: []framework.Cluster{
		cluster("a", nil), cluster("b", nil), cluster("c", nil),
		cluster("d", func(c *framework.Cluster) { c.Labels["env"] = "dev" }),
		cluster("e", func(c *framework.Cluster) { c.Labels["env"] = "dev" }),
		cluster("f", func(c *framework.Cluster) {
			c.Taints = []framework.Taint{{Key: "team", Value: "red", Effect: "NoSchedule"}}
		}),
		cluster("g", func(c *framework.Cluster) { c.Agent = framework.Agent{} }),
		cluster("h", func(c *framework.Cluster) { c.Leaving = true }),
		cluster("i", func(c *framework.Cluster) { c.Labels["region"] = "west"; c.Agent.LastHeartbeat = noon.Add(-time.Hour) }),
	}}
	policy := &framework.Policy{Kind: framework.PickN, Count: 3,
		Required: []framework.Term{{Labels: labels.SelectorFromSet(labels.Set{"env": "prod"})}},
		Spread:   []framework.SpreadConstraint{{Label: "region", MaxSkew: 2}}}
	decision := decide(t, policy, fleet, nil)
	const want = `2 of 9 clusters fit: 2 lacked label env=prod, 1 leaving the fleet, 1 not connected (member agent not online yet), ` +
		`1 not connected (no recent heartbeat signals, the limit is 5m0s), 1 tainted team=red:NoSchedule, 1 violated topology spread constraint "region" (max skew 2)`
	if got := Profile(clustereligibility.Rule{}).Diagnose(policy, fleet, &decision).String(); got != want {
		t.Errorf("Diagnose() =\n%s\nwant\n%s", got, want)
	}
}
