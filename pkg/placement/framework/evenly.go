// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"cmp"
	"slices"
)

// queue is the candidates of one class, the best first.
type queue struct {
	class      int
	candidates []candidate
	// score and reason are the spread's verdict on taking the first of them, as of the latest
	// round.
	score  int32
	reason string
}

// fillEvenly picks one cluster at a time, because each changes the spread's verdict on all others.
// It scores candidates of one class together, which saves most of the work where many clusters
// share few groups.
func (c *cycle) fillEvenly(candidates []candidate, spread Spread, rule string, need int) {
	queues := queuesOf(candidates, spread)
	for ; need > 0; need-- {
		// The last round scores all, because the others are reported with these scores.
		at := bestQueue(queues, spread, need == 1)
		if at < 0 {
			break
		}
		best := queues[at]
		c.take(best.candidates[0].cluster.Name, &Score{Spread: best.score, Affinity: best.candidates[0].affinity})
		if need > 1 {
			spread.Take(best.class)
		}
		queues = advance(queues, at)
	}
	c.reportRest(queues, rule)
}

// queuesOf divides sorted candidates into queues; the queue with the best candidate comes first.
func queuesOf(candidates []candidate, spread Spread) []*queue {
	classes, sizes := make([]int, len(candidates)), []int(nil)
	for i := range candidates {
		class := spread.Class(candidates[i].cluster)
		for len(sizes) <= class {
			sizes = append(sizes, 0)
		}
		sizes[class]++
		classes[i] = class
	}
	// One allocation serves all queues: there can be as many as clusters.
	store, used := make([]candidate, len(candidates)), 0
	all, byClass := make([]queue, 0, len(sizes)), make([]*queue, len(sizes))
	queues := make([]*queue, 0, len(sizes))
	for i, class := range classes {
		q := byClass[class]
		if q == nil {
			end := used + sizes[class]
			all = append(all, queue{class: class, candidates: store[used:used:end]})
			used, q = end, &all[len(all)-1]
			byClass[class], queues = q, append(queues, q)
		}
		q.candidates = append(q.candidates, candidates[i])
	}
	return queues
}

// bestQueue updates scores and returns which queue has the best candidate, or -1. Unless all are
// requested, it stops at the first that cannot be beaten.
func bestQueue(queues []*queue, spread Spread, all bool) int {
	best, limit := -1, spread.Best()
	for i, q := range queues {
		q.score, q.reason = spread.Score(q.class)
		if q.reason != "" || best >= 0 && q.score <= queues[best].score {
			continue
		}
		if best = i; q.score >= limit && !all {
			break
		}
	}
	return best
}

// advance removes the first candidate of a queue and moves the queue to its new position, unless it
// is empty.
func advance(queues []*queue, at int) []*queue {
	q := queues[at]
	q.candidates = q.candidates[1:]
	queues = slices.Delete(queues, at, at+1)
	if len(q.candidates) == 0 {
		return queues
	}
	to, _ := slices.BinarySearchFunc(queues, q.candidates[0], func(q *queue, c candidate) int { return byMerit(q.candidates[0], c) })
	return slices.Insert(queues, to, q)
}

// reportRest records why the remaining candidates were not picked, by the scores of the last round.
func (c *cycle) reportRest(queues []*queue, rule string) {
	type scored struct {
		candidate
		score int32
	}
	var rest []scored
	for _, q := range queues {
		for _, left := range q.candidates {
			if q.reason != "" {
				c.refuse(left.cluster.Name, rule, q.reason)
			} else {
				rest = append(rest, scored{left, q.score})
			}
		}
	}
	c.decision.Outscored = len(rest)
	best := first(rest, c.room(), func(a, b scored) int {
		if a.score != b.score {
			return cmp.Compare(b.score, a.score)
		}
		return byMerit(a.candidate, b.candidate)
	})
	for _, r := range best {
		c.reportOutscored(r.candidate, r.score)
	}
	c.reportRefused()
}

// first returns the first n elements in order. It is for few out of many, and reorders s.
func first[E any](s []E, n int, compare func(a, b E) int) []E {
	if n >= len(s) {
		slices.SortFunc(s, compare)
		return s
	}
	if n == 0 {
		return nil
	}
	found := s[:n]
	slices.SortFunc(found, compare)
	for i := n; i < len(s); i++ {
		if compare(s[i], found[n-1]) >= 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(found, s[i], compare)
		next := s[i]
		s[i] = found[n-1]
		copy(found[at+1:], found[at:n-1])
		found[at] = next
	}
	return found
}
