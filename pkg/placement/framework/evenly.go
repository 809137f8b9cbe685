// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"cmp"
	"slices"
	"strings"
)

// queue is the candidates of one class, the best first.
type queue struct {
	class      int
	candidates []candidate
	// score and reason are the spread's verdict on taking the first of them, as
	// of the latest round.
	score  int32
	reason string
}

// fillEvenly picks one cluster at a time, since each changes what the spread
// says of all others. Candidates of one class are judged together: where many
// clusters share few groups, that is most of the work saved.
func (c *cycle) fillEvenly(candidates []candidate, spread Spread, rule string, need int) {
	queues := queuesOf(candidates, spread)
	for ; need > 0; need-- {
		best := judgeAll(queues, spread)
		if best == nil {
			break
		}
		picked := best.candidates[0]
		best.candidates = best.candidates[1:]
		c.take(picked.cluster.Name, &Score{Spread: best.score, Affinity: picked.affinity})
		if need > 1 {
			spread.Take(best.class)
		}
	}
	c.tellRest(queues, rule)
}

func queuesOf(candidates []candidate, spread Spread) []*queue {
	var queues []*queue
	byClass := map[int]*queue{}
	for _, candidate := range candidates {
		class := spread.Class(candidate.cluster)
		q := byClass[class]
		if q == nil {
			q = &queue{class: class}
			byClass[class] = q
			queues = append(queues, q)
		}
		q.candidates = append(q.candidates, candidate)
	}
	return queues
}

// judgeAll brings the verdicts up to date and returns the queue with the best
// candidate, or nil.
func judgeAll(queues []*queue, spread Spread) *queue {
	var best *queue
	for _, q := range queues {
		if len(q.candidates) == 0 {
			continue
		}
		q.score, q.reason = spread.Judge(q.class)
		if q.reason != "" {
			continue
		}
		if best == nil || q.score > best.score || q.score == best.score && byMerit(q.candidates[0], best.candidates[0]) < 0 {
			best = q
		}
	}
	return best
}

// tellRest writes down why the candidates that are left were not picked, by the
// verdicts of the last round.
func (c *cycle) tellRest(queues []*queue, rule string) {
	type scored struct {
		candidate
		score int32
	}
	var rest []scored
	refused := false
	for _, q := range queues {
		for _, left := range q.candidates {
			if q.reason != "" {
				c.refuse(left.cluster.Name, rule, q.reason)
				refused = true
			} else {
				rest = append(rest, scored{left, q.score})
			}
		}
	}
	if refused { // Those of the rules are in order.
		slices.SortFunc(c.decision.Refusals, func(a, b Refusal) int { return strings.Compare(a.Cluster, b.Cluster) })
	}
	slices.SortFunc(rest, func(a, b scored) int {
		if a.score != b.score {
			return cmp.Compare(b.score, a.score)
		}
		return byMerit(a.candidate, b.candidate)
	})
	c.decision.Outscored = len(rest)
	for _, r := range rest {
		if !c.pass(r.candidate, r.score) {
			break
		}
	}
	c.tellRefused()
}
