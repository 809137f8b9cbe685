// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"time"
)

// Candidate describes one target of a rollout for Plan: a binding, or its equivalent in another kind of
// rollout.
type Candidate struct {
	// Wanted is the desired version; empty if the target should be removed.
	Wanted string
	// Current is the last assigned version; empty if there is none. Versions are only compared.
	Current string
	// Available is since when Current is available there; zero if it is not.
	Available time.Time
	// Untracked is true if the availability is not trackable: the target counts as available after
	// Pace.UnavailablePeriod.
	Untracked bool
	// Observed is true if nothing is changed there, only compared: it counts as available, and not for
	// the surge.
	Observed bool
	// Failed is true if Current has failed there.
	Failed bool
	// Undispatched is true if Current could not be sent there. The target still has the previous
	// version, which is available since Available. That is no failure, because a move would end it.
	Undispatched bool
	// Going is true if it is already being removed.
	Going bool
	// Paused is true if nothing there can change now. It counts in its current state, and does not take a
	// turn.
	Paused bool
}

// Pace is the allowed speed of a rollout, in absolute numbers.
type Pace struct {
	// Target is the desired number of members.
	Target int
	// MaxUnavailable is how many fewer can be available meanwhile.
	MaxUnavailable int
	// MaxSurge is how many more can have the placement meanwhile.
	MaxSurge int
	// UnavailablePeriod is how long resources without trackable availability count as unavailable.
	UnavailablePeriod time.Duration
	// Moves is true for a placement that leaves disconnected members. Removals then do not count for
	// the surge, because they may take indefinitely.
	Moves bool
}

// Steps are the possible steps for the planned targets.
type Steps[T any] struct {
	// Update are the targets to move to their desired version: those that have another one, and those
	// that have none yet.
	Update []T
	// Remove are the targets to remove.
	Remove []T
	// Blocked are the targets that should move and have to wait.
	Blocked []T
	// Settled are the targets with their desired version.
	Settled []T
	// Again is the delay after which to plan again without a change; 0 means never.
	Again time.Duration
}

// Plan returns the possible steps. describe describes each element of all, which are handled in the given
// order. With N as target:
//
//	may become unavailable = (ready - ready but going) - (N - maxUnavailable)
//	may be added           = N + maxSurge - those that are, or may become, ready
//
// A failed target is already unavailable, so moving or removing it costs nothing and is never delayed.
// A target to which Current could not be sent still serves the previous version. It counts as ready
// only for moves of such targets, so that they leave a bad override within maxUnavailable, and is no
// reserve for others.
func Plan[T any](all []T, describe func(T) Candidate, pace Pace, now time.Time) Steps[T] {
	p := sort(all, describe, pace, now)
	mayRemove := max(0, (p.ready-p.readyButGoing)-(pace.Target-pace.MaxUnavailable))
	mayRetry := (p.ready + p.serving - p.readyButGoing) - (pace.Target - pace.MaxUnavailable)
	mayAdd := max(0, pace.Target+pace.MaxSurge-p.canBeReady)

	steps := Steps[T]{Settled: p.settled, Again: p.again}
	steps.Update = append(steps.Update, p.failedStale...)
	steps.Remove = append(steps.Remove, p.failedRemovals...)
	steps.Remove = append(steps.Remove, take(&p.removals, &mayRemove)...)
	steps.Update = append(steps.Update, take(&p.stale, &mayRemove)...)
	mayRetry = max(0, mayRetry-(len(steps.Update)-len(p.failedStale))-(len(steps.Remove)-len(p.failedRemovals)))
	steps.Update = append(steps.Update, take(&p.undispatched, &mayRetry)...)
	steps.Update = append(steps.Update, take(&p.additions, &mayAdd)...)
	steps.Blocked = slices.Concat(p.paused, p.stale, p.undispatched, p.additions)
	return steps
}

// take removes as many elements from the front as the budget allows.
func take[T any](from *[]T, budget *int) []T {
	n := min(len(*from), *budget)
	started := (*from)[:n]
	*from, *budget = (*from)[n:], *budget-n
	return started
}

// sorted is the input by kind of step.
type sorted[T any] struct {
	removals, failedRemovals []T
	stale, failedStale       []T
	additions, settled       []T
	paused                   []T
	undispatched             []T
	ready, readyButGoing     int
	// serving is the number of Undispatched and available targets.
	serving    int
	canBeReady int
	again      time.Duration
}

func sort[T any](all []T, describe func(T) Candidate, pace Pace, now time.Time) *sorted[T] {
	p := &sorted[T]{}
	for _, one := range all {
		c := describe(one)
		ready, wait := c.readiness(pace.UnavailablePeriod, now)
		if ready && c.Undispatched && !c.Going {
			p.serving++
		}
		if ready = ready && !c.Undispatched; ready {
			p.ready++
		}
		if c.canBeReady(pace) {
			p.canBeReady++
		}
		if wait > 0 && (p.again == 0 || wait < p.again) {
			p.again = wait
		}
		if !c.Going {
			p.add(one, c)
		} else if ready {
			p.readyButGoing++
		}
	}
	return p
}

func (p *sorted[T]) add(one T, c Candidate) {
	switch {
	case c.Paused && !c.settled():
		p.paused = append(p.paused, one)
	case c.isNew():
		p.additions = append(p.additions, one)
	case c.Wanted == "" && (c.Failed || c.Current == ""):
		p.failedRemovals = append(p.failedRemovals, one)
	case c.Wanted == "":
		p.removals = append(p.removals, one)
	case c.settled():
		p.settled = append(p.settled, one)
	case c.Failed:
		p.failedStale = append(p.failedStale, one)
	case c.Undispatched:
		p.undispatched = append(p.undispatched, one)
	default:
		p.stale = append(p.stale, one)
	}
}

// isNew reports whether the candidate has not got any version yet.
func (c Candidate) isNew() bool { return c.Wanted != "" && c.Current == "" }

func (c Candidate) settled() bool { return c.Wanted != "" && c.Wanted == c.Current }

// canBeReady reports whether the candidate is ready or may become ready. A candidate that is being
// removed still exists until that is complete.
func (c Candidate) canBeReady(pace Pace) bool {
	return !c.isNew() && !c.Failed && !c.Observed && !(c.Going && pace.Moves)
}

// readiness reports whether the candidate counts as available, and otherwise how long it still has to
// wait if only time is missing.
func (c Candidate) readiness(period time.Duration, now time.Time) (ready bool, wait time.Duration) {
	switch {
	case c.Observed:
		return true, 0
	case c.Available.IsZero():
		return false, 0
	case !c.Untracked:
		return true, 0
	}
	left := c.Available.Add(period).Sub(now)
	return left <= 0, max(left, 0)
}
