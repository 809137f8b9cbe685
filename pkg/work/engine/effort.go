// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"time"

	"k8s.io/utils/clock"
)

// Effort is how much is done at a time for the works of one family, and how often although
// nothing seems to have changed. Zero values mean the usual.
type Effort struct {
	// Works is how many works are looked at in parallel. Zero: 8.
	Works int
	// Manifests is how many manifests of a work are written in parallel. Zero: 4.
	Manifests int
	// Resync is after what time all objects of a work are looked at again although nothing
	// seems to have changed; up to as much is added at random. Zero: 15 minutes. What
	// changes is seen at once; this is for what a watch may have missed.
	Resync time.Duration
	// Blind is after what time a work is looked at again of whose objects the agent may not
	// watch some. Zero: 30 seconds.
	Blind time.Duration
	// Removal is for how long custom resources may end before what serves them is deleted too.
	// Zero: 5 minutes.
	Removal time.Duration
	// Clock is for tests. Nil: the real one.
	Clock clock.PassiveClock
}

// WithDefaults is the effort with nothing left to default.
func (e Effort) WithDefaults() Effort {
	e.Works, e.Manifests = cmp.Or(e.Works, 8), cmp.Or(e.Manifests, 4)
	e.Resync, e.Blind = cmp.Or(e.Resync, 15*time.Minute), cmp.Or(e.Blind, 30*time.Second)
	e.Removal = cmp.Or(e.Removal, 5*time.Minute)
	if e.Clock == nil {
		e.Clock = clock.RealClock{}
	}
	return e
}
