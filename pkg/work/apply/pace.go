// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import "time"

const (
	freeRepairs    = 3
	firstWait      = time.Second
	longestWait    = 5 * time.Minute
	quietUntilPast = 10 * time.Minute
)

// pace holds back the repairs of one object, so that two controllers that undo
// each other's changes do not keep an API server busy: some repairs are free,
// then each waits twice as long as the one before. After a quiet while all is
// forgotten.
type pace struct {
	repairs int
	last    time.Time
}

// wait is how long the next repair has to wait; zero or less: it may go ahead.
func (p pace) wait(now time.Time) time.Duration {
	if p.repairs < freeRepairs || now.Sub(p.last) > quietUntilPast {
		return 0
	}
	pause := longestWait
	if doublings := p.repairs - freeRepairs; doublings < 10 {
		pause = min(pause, firstWait<<doublings)
	}
	return p.last.Add(pause).Sub(now)
}

// repaired is the pace after one more repair.
func (p pace) repaired(now time.Time) pace {
	if now.Sub(p.last) > quietUntilPast {
		return pace{repairs: 1, last: now}
	}
	return pace{repairs: p.repairs + 1, last: now}
}
