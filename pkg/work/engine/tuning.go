// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"time"

	"k8s.io/utils/clock"
)

// Tuning limits concurrency and sets the intervals for the works of one family. Zero values mean
// the defaults.
type Tuning struct {
	// Works is the number of works reconciled in parallel. Default: 8.
	Works int
	// Manifests is the number of manifests of one work written in parallel. Default: 4.
	Manifests int
	// Resync is the interval after which all objects of a work are read although nothing seems to
	// have changed, plus up to the same time at random. Default: 15 minutes. Changes are seen at
	// once; a resync covers events that the watch may have missed.
	Resync time.Duration
	// Unwatched is the interval between reconciles of a work if the agent cannot watch some of its
	// objects. Default: 30 seconds.
	Unwatched time.Duration
	// Removal is how long terminating custom resources can take before the objects that serve them
	// are deleted. Default: 5 minutes.
	Removal time.Duration
	// Clock is replaced in tests. If nil, the real clock.
	Clock clock.PassiveClock
}

// WithDefaults returns the effort with defaults in place of zero values.
func (e Tuning) WithDefaults() Tuning {
	e.Works, e.Manifests = cmp.Or(e.Works, 8), cmp.Or(e.Manifests, 4)
	e.Resync, e.Unwatched = cmp.Or(e.Resync, 15*time.Minute), cmp.Or(e.Unwatched, 30*time.Second)
	e.Removal = cmp.Or(e.Removal, 5*time.Minute)
	if e.Clock == nil {
		e.Clock = clock.RealClock{}
	}
	return e
}
