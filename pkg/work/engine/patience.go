// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import "time"

const (
	freeRepairs    = 3
	freeWithin     = time.Minute
	firstWait      = time.Second
	longestWait    = 5 * time.Minute
	quietUntilPast = 10 * time.Minute
)

// patience holds back the repairs of one object, so that two controllers that undo
// each other's changes do not keep an API server busy. After freeRepairs within
// freeWithin the object is contested: each repair waits twice as long as the one
// before. It is normal again after a quiet while.
type patience struct {
	recent    []time.Time // repairs, while the object is not contested
	contested bool
	waits     int       // repairs since it is contested
	last      time.Time // repair
}

// quietIn is how long the object counts as contested if nothing else happens; zero
// or less: it does not.
func (p patience) quietIn(now time.Time) time.Duration {
	if !p.contested {
		return 0
	}
	return p.last.Add(quietUntilPast).Sub(now)
}

// wait is how long the next repair has to wait; zero or less: it may go ahead.
func (p patience) wait(now time.Time) time.Duration {
	if p.quietIn(now) <= 0 {
		return 0
	}
	pause := longestWait
	if p.waits < 10 {
		pause = min(pause, firstWait<<p.waits)
	}
	return p.last.Add(pause).Sub(now)
}

// repaired is the patience after one more repair.
func (p patience) repaired(now time.Time) patience {
	if p.quietIn(now) > 0 {
		return patience{contested: true, waits: p.waits + 1, last: now}
	}
	after := patience{last: now}
	for _, at := range p.recent {
		if now.Sub(at) < freeWithin {
			after.recent = append(after.recent, at)
		}
	}
	after.recent = append(after.recent, now)
	if len(after.recent) >= freeRepairs {
		return patience{contested: true, last: now}
	}
	return after
}
