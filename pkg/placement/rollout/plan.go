// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

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
	// Held reports whether nothing may change on a binding's member now; nil is never.
	// Such bindings count for what they are, and take nobody's turn.
	Held func(placementv1beta1.BindingObject) bool
}

// Steps are what may be done now.
type Steps struct {
	// Update are bindings to move to the latest snapshot and overrides: those that
	// are bound to older ones, and those that are bound to none yet.
	Update []placementv1beta1.BindingObject
	// Remove are unscheduled bindings to delete.
	Remove []placementv1beta1.BindingObject
	// Blocked are bindings that should move and may not yet.
	Blocked []placementv1beta1.BindingObject
	// Settled are bound bindings that are where they should be.
	Settled []placementv1beta1.BindingObject
	// Again is after how long to plan anew though nothing happens; 0 is never.
	Again time.Duration
}

// Plan says what may be done now. upToDate reports whether a bound binding is
// where it should be. Bindings are taken in the order in which they are given.
// With N as target:
//
//	may become unavailable = (ready - ready but going) - (N - maxUnavailable)
//	may be added           = N + maxSurge - those that are, or may become, ready
//
// A binding that has failed is unavailable already, so moving or removing it
// costs nothing and is never held back.
func Plan(bindings []placementv1beta1.BindingObject, upToDate func(placementv1beta1.BindingObject) bool, pace Pace, now time.Time) Steps {
	p := sort(bindings, upToDate, pace, now)
	mayRemove := max(0, (p.ready-p.readyButGoing)-(pace.Target-pace.MaxUnavailable))
	mayAdd := max(0, pace.Target+pace.MaxSurge-p.canBeReady)

	steps := Steps{Settled: p.settled, Again: p.again}
	steps.Update = append(steps.Update, p.failedStale...)
	steps.Remove = append(steps.Remove, p.failedRemovals...)
	removals := take(&p.removals, &mayRemove)
	steps.Remove = append(steps.Remove, removals...)
	steps.Update = append(steps.Update, take(&p.stale, &mayRemove)...)
	steps.Update = append(steps.Update, take(&p.additions, &mayAdd)...)
	steps.Blocked = append(append(append(steps.Blocked, p.held...), p.stale...), p.additions...)
	return steps
}

// take cuts as many bindings off the front as the budget allows.
func take(from *[]placementv1beta1.BindingObject, budget *int) []placementv1beta1.BindingObject {
	n := min(len(*from), *budget)
	taken := (*from)[:n]
	*from, *budget = (*from)[n:], *budget-n
	return taken
}

// sorted is the bindings by what may have to be done with them.
type sorted struct {
	removals, failedRemovals []placementv1beta1.BindingObject
	stale, failedStale       []placementv1beta1.BindingObject
	additions, settled       []placementv1beta1.BindingObject
	held                     []placementv1beta1.BindingObject
	ready, readyButGoing     int
	canBeReady               int
	again                    time.Duration
}

func sort(bindings []placementv1beta1.BindingObject, upToDate func(placementv1beta1.BindingObject) bool, pace Pace, now time.Time) *sorted {
	p := &sorted{}
	for _, b := range bindings {
		ready, wait := readiness(b, pace.UnavailablePeriod, now)
		if ready {
			p.ready++
		}
		// One on its way out is still on its member, for as long as that takes.
		gone := pace.Moves && b.GetDeletionTimestamp() != nil
		if b.GetSpec().State != placementv1beta1.BindingScheduled && !gone && !Failed(b) && !diffReported(b) {
			p.canBeReady++
		}
		if wait > 0 && (p.again == 0 || wait < p.again) {
			p.again = wait
		}
		if b.GetDeletionTimestamp() != nil {
			if ready {
				p.readyButGoing++
			}
			continue
		}
		p.add(b, upToDate, pace.Held)
	}
	return p
}

func (p *sorted) add(b placementv1beta1.BindingObject, upToDate, held func(placementv1beta1.BindingObject) bool) {
	spec, failed := b.GetSpec(), Failed(b)
	switch {
	case held != nil && held(b) && (spec.State != placementv1beta1.BindingBound || !upToDate(b)):
		p.held = append(p.held, b)
	case spec.State == placementv1beta1.BindingScheduled:
		p.additions = append(p.additions, b)
	case spec.State == placementv1beta1.BindingUnscheduled && (failed || spec.ResourceSnapshotName == ""):
		p.failedRemovals = append(p.failedRemovals, b)
	case spec.State == placementv1beta1.BindingUnscheduled:
		p.removals = append(p.removals, b)
	case upToDate(b):
		p.settled = append(p.settled, b)
	case failed:
		p.failedStale = append(p.failedStale, b)
	default:
		p.stale = append(p.stale, b)
	}
}

// readiness reports whether the binding counts as available, and if it only
// needs time to, how much.
func readiness(b placementv1beta1.BindingObject, period time.Duration, now time.Time) (ready bool, wait time.Duration) {
	if diffReported(b) {
		return true, 0
	}
	available := current(b, placementv1beta1.ConditionAvailable)
	if available == nil || available.Status != metav1.ConditionTrue {
		return false, 0
	}
	if available.Reason != placementv1beta1.ReasonNotAllWorkAreAvailabilityTrackable {
		return true, 0
	}
	left := available.LastTransitionTime.Add(period).Sub(now)
	return left <= 0, max(left, 0)
}

func diffReported(b placementv1beta1.BindingObject) bool {
	reported := current(b, placementv1beta1.ConditionDiffReported)
	return reported != nil && reported.Status == metav1.ConditionTrue
}

// Failed reports whether something went wrong on the way to the member. What is
// merely not done yet has not failed.
func Failed(b placementv1beta1.BindingObject) bool {
	for _, kind := range []string{
		placementv1beta1.ConditionOverridden, placementv1beta1.ConditionWorkSynchronized,
		placementv1beta1.ConditionApplied, placementv1beta1.ConditionAvailable,
	} {
		if c := current(b, kind); c != nil && c.Status == metav1.ConditionFalse && !pending(c.Reason) {
			return true
		}
	}
	return false
}

func pending(reason string) bool {
	switch reason {
	case placementv1beta1.ReasonOverriddenPending, placementv1beta1.ReasonWorkNotSynchronizedYet,
		placementv1beta1.ReasonApplyPending, placementv1beta1.ReasonResourceNotAvailableYet:
		return true
	}
	return false
}

// current returns a condition that is about the binding's present spec, or nil.
func current(b placementv1beta1.BindingObject, kind string) *metav1.Condition {
	c := meta.FindStatusCondition(b.GetStatus().Conditions, kind)
	if c == nil || c.ObservedGeneration != b.GetGeneration() {
		return nil
	}
	return c
}
