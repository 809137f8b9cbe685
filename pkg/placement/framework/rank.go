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

// Scorer scores clusters that pass the rules. If its scores can expire, it is also Expiring.
type Scorer interface {
	// Name is the scorer's name in messages.
	Name() string
	// Score reads all candidates, and returns the function that scores one of them.
	Score(policy *Policy, fleet *Fleet, candidates []*Cluster) func(cluster *Cluster) int64
}

// Weighted is a scorer and its weight.
type Weighted struct {
	Scorer Scorer
	Weight int64
}

// Ranking is the rules and the spread of policies that are decided from the beginning each time.
type Ranking struct {
	// Rules filter in this order; the first refusal counts.
	Rules []Rule
	// Spread scores candidates after the rules, if the policy has constraints.
	Spread Spreader
	// Finished is called when a rule, or a scorer, has processed all clusters. Optional.
	Finished func(plugin string, scores bool)
}

// Ranked is the result for a policy.
type Ranked struct {
	// Picked are the best first: the highest score, then the smaller name.
	Picked []Place
	// Outscored are the candidates that were not picked, in the same order.
	Outscored []Place
	// Refusals are the other clusters.
	Refusals []Refusal
	// Total counts the clusters that were considered.
	Total int
	// Missing is how many more clusters the policy wants; always 0 for one that takes all.
	Missing int
	// Until is when the first of the verdicts and scores expires, so that it has to be decided
	// again; zero is never.
	Until time.Time
}

// Place is a candidate and its score.
type Place struct {
	Cluster *Cluster
	// Score is the weighted sum of the scorers' scores.
	Score int64
	// Parts are the scorers' scores, in their order, if they were requested.
	Parts []int64
}

// Rank filters, scores and cuts. It knows the policy's current clusters only from policy.Current, and
// moves whenever others score higher. It ignores clusters that are leaving. It fails for a policy
// that names its clusters.
func (r Ranking) Rank(policy *Policy, fleet *Fleet, scorers []Weighted) (Ranked, error) {
	if policy.Kind != PickAll && policy.Kind != PickN {
		return Ranked{}, fmt.Errorf("policies of type %q are not ranked", policy.Kind)
	}
	fleet = fleet.within(policy.Within)
	ranked := Ranked{}
	filters := newFilters(r.Rules, policy, fleet)
	candidates := make([]*Cluster, 0, len(fleet.Clusters))
	for _, cluster := range fleet.byName() {
		if !cluster.Leaving {
			candidates = append(candidates, cluster)
		}
	}
	ranked.Total = len(candidates)
	for i, rule := range r.Rules {
		var refused []Refusal
		candidates, refused = filters.filterAll(i, candidates)
		ranked.Refusals = append(ranked.Refusals, refused...)
		r.finished(rule.Name(), false)
	}
	slices.SortFunc(ranked.Refusals, func(a, b Refusal) int { return strings.Compare(a.Cluster, b.Cluster) })
	places := r.scoreAll(policy, fleet, candidates, scorers, &filters)
	want := len(places)
	if policy.Kind == PickN {
		want = max(0, policy.Count)
	}
	r.pick(&ranked, policy, fleet, places, want)
	if policy.Kind == PickN {
		ranked.Missing = want - len(ranked.Picked)
	}
	ranked.Until = filters.until
	return ranked, nil
}

func (r Ranking) finished(plugin string, scores bool) {
	if r.Finished != nil {
		r.Finished(plugin, scores)
	}
}

// scoreAll scores and sorts the candidates.
func (r Ranking) scoreAll(policy *Policy, fleet *Fleet, candidates []*Cluster, scorers []Weighted, filters *filters) []Place {
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
				filters.noteExpiry(expiring.Until(policy, fleet, places[i].Cluster))
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

// pick takes as many as wanted of the sorted candidates.
func (r Ranking) pick(ranked *Ranked, policy *Policy, fleet *Fleet, places []Place, want int) {
	if r.Spread != nil && len(policy.Spread) > 0 {
		r.pickEvenly(ranked, policy, fleet, places, want)
		return
	}
	n := min(want, len(places))
	ranked.Picked, ranked.Outscored = places[:n:n], places[n:]
}

// pickEvenly picks one at a time, because each changes the spread's verdict on all others. Groups
// are those of the candidates: a group in which nothing can be picked does not limit the others.
func (r Ranking) pickEvenly(ranked *Ranked, policy *Policy, fleet *Fleet, places []Place, want int) {
	among := &Fleet{Now: fleet.Now, MostDecided: fleet.MostDecided, Clusters: make([]Cluster, len(places))}
	candidates := make([]candidate, len(places))
	for i := range places {
		among.Clusters[i] = *places[i].Cluster
		// Only their order counts here.
		candidates[i] = candidate{cluster: places[i].Cluster, affinity: int32(-i)}
	}
	spread := r.Spread.Start(policy, among, nil)
	queues := queuesOf(candidates, spread)
	taken := make([]bool, len(places))
	for ; want > 0; want-- {
		at := bestQueue(queues, spread, false)
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
		if _, reason := spread.Score(q.class); reason != "" {
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

// Diagnose explains Rank's result in numbers.
func (r Ranking) Diagnose(policy *Policy, fleet *Fleet, ranked *Ranked) Diagnosis {
	counts := briefs(r.Rules, policy, fleet.within(policy.Within), ranked.Refusals)
	if len(ranked.Outscored) > 0 {
		counts["scored lower"] = len(ranked.Outscored)
	}
	return diagnosis(ranked.Total, len(ranked.Picked), counts)
}
