// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import "time"

const (
	// DefaultPeriod is how often agents renew their Leases by default.
	DefaultPeriod = 60 * time.Second
	// patience is the number of periods without a renewal after which a Lease has expired.
	patience = 5
)

// Beat is a renewal of a Lease, and when the hub saw it.
type Beat struct {
	// Renewed is the time by the agent's clock.
	Renewed time.Time
	// Seen is the time by the hub's clock; zero if the hub only knows that it was before.
	Seen time.Time
}

// Life is the state of a cluster by its last renewal.
type Life struct {
	// Gone is true if the agent has not renewed for too long.
	Gone bool
	// Left is the remaining time; not positive if Gone.
	Left time.Duration
	// Judged is true if the clocks could be compared.
	Judged bool
	// Synced is true if they agree approximately.
	Synced bool
}

// LifeOf decides whether the agent with this last beat is gone. Period is the interval of renewals;
// zero is the default. The agent counts as gone five periods after the time in the Lease, by the
// hub's clock, as Open Cluster Management's clients expect. With anyClock it is five periods after
// the hub saw the renewal, so that an agent whose clock is allowed to be wrong does not count as
// gone.
func LifeOf(beat Beat, period time.Duration, anyClock bool, now time.Time) Life {
	if period <= 0 {
		period = DefaultPeriod
	}
	limit := patience * period
	life := Life{Judged: !beat.Seen.IsZero()}
	apart := beat.Seen.Sub(beat.Renewed).Abs()
	life.Synced = life.Judged && (apart < limit || anyClock)
	since := beat.Renewed
	if anyClock && life.Judged {
		since = beat.Seen
	}
	life.Left = since.Add(limit).Sub(now)
	life.Gone = life.Left <= 0
	return life
}
