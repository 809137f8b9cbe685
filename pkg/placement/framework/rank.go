// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Scorer says how well clusters suit that the rules let pass. One whose scores can end by
// themselves is Expiring too.
type Scorer interface {
	// Name is the scorer's name in what people read.
	Name() string
	// Score looks at all candidates, and returns what it gives to one of them.
	Score(policy *Policy, fleet *Fleet, candidates []*Cluster) func(cluster *Cluster) int64
}

// Weighted is a scorer, and how much it counts.
type Weighted struct {
	Scorer Scorer
	Weight int64
}

// Ranking is what judges and scores for policies that are decided anew each time.
type Ranking struct {
	// Rules are asked in this order; the first no counts.
	Rules []Rule
	// Spread judges candidates after the rules, if the policy has constraints.
	Spread Spreader
	// Finished is told when a rule, or a scorer, has looked at all clusters; nil if nobody
	// wants to know.
	Finished func(plugin string, scores bool)
}

// Ranked is what the policy has now.
type Ranked struct {
	// Picked are the best first: the highest score, then the smaller name.
	Picked []Place
	// Outscored are the candidates that were not picked, in the same order.
	Outscored []Place
	// Refusals are the other clusters.
	Refusals []Refusal
	// Total counts the clusters that were looked at.
	Total int
	// Missing is how many more clusters the policy wants; one that takes all wants none.
	Missing int
	// Until is when the first of the verdicts and scores ends by itself, so that it has
	// to be decided again; zero is never.
	Until time.Time
}

// Place is a candidate and what it was given.
type Place struct {
	Cluster *Cluster
	// Score is the sum of what the scorers give, each as often as it counts.
	Score int64
	// Parts are what the scorers gave, in their order, if they were asked for.
	Parts []int64
}

// Rank filters, scores and cuts: it knows the clusters that the policy has now by
// policy.Held only, and moves it whenever others score higher. Clusters that are leaving
// are not looked at. It fails for a policy that names its clusters.
func (r Ranking) Rank(policy *Policy, fleet *Fleet, scorers []Weighted) (Ranked, error) {
	if policy.Kind != PickAll && policy.Kind != PickN {
		return Ranked{}, fmt.Errorf("policies of type %q are not ranked", policy.Kind)
	}
	fleet = fleet.within(policy.Within)
	ranked := Ranked{}
	jury := newJury(r.Rules, policy, fleet)
	candidates := make([]*Cluster, 0, len(fleet.Clusters))
	for _, cluster := range fleet.byName() {
		if !cluster.Leaving {
			candidates = append(candidates, cluster)
		}
	}
	ranked.Total = len(candidates)
	for i, rule := range r.Rules {
		var refused []Refusal
		candidates, refused = jury.sift(i, candidates)
		ranked.Refusals = append(ranked.Refusals, refused...)
		r.finished(rule.Name(), false)
	}
	slices.SortFunc(ranked.Refusals, func(a, b Refusal) int { return strings.Compare(a.Cluster, b.Cluster) })
	places := r.scoreAll(policy, fleet, candidates, scorers, &jury)
	want := len(places)
	if policy.Kind == PickN {
		want = max(0, policy.Count)
	}
	r.pick(&ranked, policy, fleet, places, want)
	if policy.Kind == PickN {
		ranked.Missing = want - len(ranked.Picked)
	}
	ranked.Until = jury.until
	return ranked, nil
}

func (r Ranking) finished(plugin string, scores bool) {
	if r.Finished != nil {
		r.Finished(plugin, scores)
	}
}

// scoreAll gives each candidate its score, and brings them in order.
func (r Ranking) scoreAll(policy *Policy, fleet *Fleet, candidates []*Cluster, scorers []Weighted, ends *jury) []Place {
	places := make([]Place, len(candidates))
	parts := make([]int64, len(candidates)*len(scorers))
	for i, cluster := range candidates {
		places[i] = Place{Cluster: cluster, Parts: parts[i*len(scorers) : (i+1)*len(scorers) : (i+1)*len(scorers)]}
	}
	for s, weighted := range scorers {
		score := weighted.Scorer.Score(policy, fleet, candidates)
		expiring, expires := weighted.Scorer.(Expiring)
		for i := range places {
			given := score(places[i].Cluster)
			places[i].Parts[s] = given
			places[i].Score += weighted.Weight * given
			if expires {
				ends.note(expiring.Until(policy, fleet, places[i].Cluster))
			}
		}
		r.finished(weighted.Scorer.Name(), true)
	}
	slices.SortFunc(places, byScore)
	return places
}

// byScore orders the best first, and of equals the smaller name.
func byScore(a, b Place) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.Cluster.Name, b.Cluster.Name))
}

// pick takes as many as are wanted of the candidates, which are in order.
func (r Ranking) pick(ranked *Ranked, policy *Policy, fleet *Fleet, places []Place, want int) {
	if r.Spread != nil && len(policy.Spread) > 0 {
		r.pickEvenly(ranked, policy, fleet, places, want)
		return
	}
	n := min(want, len(places))
	ranked.Picked, ranked.Outscored = places[:n:n], places[n:]
}

// pickEvenly picks one at a time, since each changes what the spread says of all others.
// Groups are those of the candidates: one in which nobody can be picked holds no other
// back.
func (r Ranking) pickEvenly(ranked *Ranked, policy *Policy, fleet *Fleet, places []Place, want int) {
	among := &Fleet{Now: fleet.Now, MostDecided: fleet.MostDecided, Clusters: make([]Cluster, len(places))}
	candidates := make([]candidate, len(places))
	for i := range places {
		among.Clusters[i] = *places[i].Cluster
		// Their order is all that counts here.
		candidates[i] = candidate{cluster: places[i].Cluster, affinity: int32(-i)}
	}
	spread := r.Spread.Start(policy, among, nil)
	queues := queuesOf(candidates, spread)
	taken := make([]bool, len(places))
	for ; want > 0; want-- {
		at := judge(queues, spread, false)
		if at < 0 {
			break
		}
		best := queues[at]
		taken[-best.candidates[0].affinity] = true
		spread.Take(best.class)
		queues = advance(queues, at)
	}
	refused := map[string]string{}
	for _, q := range queues {
		if _, reason := spread.Judge(q.class); reason != "" {
			for _, left := range q.candidates {
				refused[left.cluster.Name] = reason
			}
		}
	}
	for i, place := range places {
		switch reason := refused[place.Cluster.Name]; {
		case taken[i]:
			ranked.Picked = append(ranked.Picked, place)
		case reason != "":
			ranked.Refusals = append(ranked.Refusals, Refusal{Cluster: place.Cluster.Name, Rule: r.Spread.Name(), Reason: reason})
		default:
			ranked.Outscored = append(ranked.Outscored, place)
		}
	}
}

// Diagnose explains in numbers what Rank has said of the policy and the fleet.
func (r Ranking) Diagnose(policy *Policy, fleet *Fleet, ranked *Ranked) Diagnosis {
	counts := briefs(r.Rules, policy, fleet.within(policy.Within), ranked.Refusals)
	if len(ranked.Outscored) > 0 {
		counts["scored lower"] = len(ranked.Outscored)
	}
	return diagnosis(ranked.Total, len(ranked.Picked), counts)
}
