// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import "time"

const (
	freeCorrections = 3
	freeWithin      = time.Minute
	firstWait       = time.Second
	longestWait     = 5 * time.Minute
	contestLength   = 10 * time.Minute
)

// backoff delays corrections of one object, so that two controllers that revert each other's
// changes do not overload an API server. After freeRepairs corrections within freeWithin the object
// is contested, and the delay doubles with each correction. The contest ends after quietUntilPast
// without a correction.
type backoff struct {
	recent    []time.Time // corrections, while the object is not contested
	contested bool
	waits     int       // corrections since it is contested
	last      time.Time // correction
}

// endsIn is how long the object stays contested if nothing else happens; zero or less if it is not
// contested.
func (p backoff) endsIn(now time.Time) time.Duration {
	if !p.contested {
		return 0
	}
	return p.last.Add(contestLength).Sub(now)
}

// wait is how long the next correction has to wait; zero or less if it can be done now.
func (p backoff) wait(now time.Time) time.Duration {
	if p.endsIn(now) <= 0 {
		return 0
	}
	pause := longestWait
	if p.waits < 10 {
		pause = min(pause, firstWait<<p.waits)
	}
	return p.last.Add(pause).Sub(now)
}

// corrected returns the backoff after another correction.
func (p backoff) corrected(now time.Time) backoff {
	if p.endsIn(now) > 0 {
		return backoff{contested: true, waits: p.waits + 1, last: now}
	}
	after := backoff{last: now}
	for _, at := range p.recent {
		if now.Sub(at) < freeWithin {
			after.recent = append(after.recent, at)
		}
	}
	after.recent = append(after.recent, now)
	if len(after.recent) >= freeCorrections {
		return backoff{contested: true, last: now}
	}
	return after
}
