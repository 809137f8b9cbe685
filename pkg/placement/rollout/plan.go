// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"time"
)

// Candidate is what Plan knows of one place to which something is rolled out: a
// binding, or whatever another kind of rollout has instead.
type Candidate struct {
	// Wanted is the version that it shall have; empty if it shall have none any more.
	Wanted string
	// Current is the version that it was given last; empty if it was given none yet.
	// Versions are only compared.
	Current string
	// Available is since when Current is available there; zero if it is not.
	Available time.Time
	// Untracked is set if nobody can tell whether it really is: it counts as available
	// after Pace.UnavailablePeriod.
	Untracked bool
	// Observed is set if nothing is changed there, only compared: it counts as
	// available, and for nobody's surge.
	Observed bool
	// Failed is set if something has gone wrong there with Current.
	Failed bool
	// Undispatched is set if Current could not be sent there: it still has the previous version,
	// which is available since Available. That is no failure, as a move would end it.
	Undispatched bool
	// Going is set if it is being taken away already.
	Going bool
	// Held is set if nothing may change there now. It counts for what it is, and takes
	// nobody's turn.
	Held bool
}

// Pace is how fast a rollout may go, in absolute numbers.
type Pace struct {
	// Target is how many members the placement shall have.
	Target int
	// MaxUnavailable is by how many fewer may be available meanwhile.
	MaxUnavailable int
	// MaxSurge is by how many more may have the placement meanwhile.
	MaxSurge int
	// UnavailablePeriod is how long resources whose availability cannot be
	// tracked count as unavailable.
	UnavailablePeriod time.Duration
	// Moves is set for a placement that leaves silent members. What is being taken off
	// one does not count for the surge then: it may take for ever.
	Moves bool
}

// Steps are what may be done now with what was planned for.
type Steps[T any] struct {
	// Update are to be moved to the version that they shall have: those that have
	// another, and those that have none yet.
	Update []T
	// Remove are to be taken away.
	Remove []T
	// Blocked should move and may not yet.
	Blocked []T
	// Settled are where they should be.
	Settled []T
	// Again is after how long to plan anew though nothing happens; 0 is never.
	Again time.Duration
}

// Plan says what may be done now. look says what it has to know of each of all, which
// are taken in the order in which they are given. With N as target:
//
//	may become unavailable = (ready - ready but going) - (N - maxUnavailable)
//	may be added           = N + maxSurge - those that are, or may become, ready
//
// One that has failed is unavailable already, so moving or removing it costs nothing
// and is never held back. One to which Current could not be sent still serves the version
// before. It counts as ready for its own kind only, which so gets out of a bad override within
// maxUnavailable, and is no reserve for others.
func Plan[T any](all []T, look func(T) Candidate, pace Pace, now time.Time) Steps[T] {
	p := sort(all, look, pace, now)
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
	steps.Blocked = slices.Concat(p.held, p.stale, p.undispatched, p.additions)
	return steps
}

// take cuts as many off the front as the budget allows.
func take[T any](from *[]T, budget *int) []T {
	n := min(len(*from), *budget)
	taken := (*from)[:n]
	*from, *budget = (*from)[n:], *budget-n
	return taken
}

// sorted is all by what may have to be done with them.
type sorted[T any] struct {
	removals, failedRemovals []T
	stale, failedStale       []T
	additions, settled       []T
	held                     []T
	undispatched             []T
	ready, readyButGoing     int
	// serving are those that are Undispatched and available.
	serving    int
	canBeReady int
	again      time.Duration
}

func sort[T any](all []T, look func(T) Candidate, pace Pace, now time.Time) *sorted[T] {
	p := &sorted[T]{}
	for _, one := range all {
		c := look(one)
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
	case c.Held && !c.settled():
		p.held = append(p.held, one)
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

// isNew reports whether the candidate is still to get anything.
func (c Candidate) isNew() bool { return c.Wanted != "" && c.Current == "" }

func (c Candidate) settled() bool { return c.Wanted != "" && c.Wanted == c.Current }

// canBeReady reports whether the candidate is, or may become, one more that is ready.
// One on its way out is still there, for as long as that takes.
func (c Candidate) canBeReady(pace Pace) bool {
	return !c.isNew() && !c.Failed && !c.Observed && !(c.Going && pace.Moves)
}

// readiness reports whether the candidate counts as available, and if it only needs
// time to, how much.
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
