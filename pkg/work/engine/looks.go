// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"math/rand/v2"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"fleetgate.io/fleetgate/pkg/work/engine/memberwatch"
)

const (
	// FirstRetry is after what time a work is looked at again of which something was
	// refused, at first.
	FirstRetry   = time.Second
	longestRetry = 5 * time.Minute

	// WaitPause is after what time a removal is looked at again that waits for something of
	// which no event tells.
	WaitPause = 5 * time.Second

	// FirstErrorRetry is after what time a look that came to an error is repeated, at
	// first. The longest is shorter than that of a refusal: an error is mostly a member
	// that was not reached, and comes back for all works at once.
	FirstErrorRetry   = 200 * time.Millisecond
	longestErrorRetry = time.Minute
)

// NewRetries says when works of which something was refused are looked at again: soon at
// first, and less and less often.
func NewRetries() workqueue.TypedRateLimiter[string] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[string](FirstRetry, longestRetry)
}

// ControllerOptions are those of a controller that looks at works.
func (e Effort) ControllerOptions() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: e.Works,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](FirstErrorRetry, longestErrorRetry),
	}
}

// touch has a work looked at because of a change on the member that is not ours.
func (e *Engine) touch(ctx context.Context, changed memberwatch.Event) {
	work, expected := e.about(changed)
	if expected {
		return
	}
	if changed.NewKind {
		e.retries.Forget(changed.Work)
		e.ForgetPlan(changed.Work)
	}
	select {
	case e.touched <- event.GenericEvent{Object: work}:
	case <-ctx.Done():
	}
}

// Touched are the works that a change on the member is about.
func (e *Engine) Touched() <-chan event.GenericEvent { return e.touched }

// NextLook is when to look again at a work of which this came: soon at what was postponed,
// late otherwise. refused says that something was refused and may be tried again, by
// [NewRetries]. Where again is not nil and says a time of an outcome, that is when to look
// at it, whatever it is.
func (e *Engine) NextLook(work string, r Result, again func(Outcome) time.Duration) (next time.Duration, refused bool) {
	next = e.effort.Resync + rand.N(e.effort.Resync)
	if len(e.Blind(work)) > 0 {
		next = min(next, e.effort.Blind)
	}
	if r.Waits {
		next = min(next, WaitPause)
	}
	refused = len(r.Denied) > 0
	for _, out := range r.Outcomes {
		if again != nil {
			if in := again(out); in > 0 {
				next = min(next, in)
				continue
			}
		}
		refused = refused || out.isOpen()
		for _, wait := range []time.Duration{out.Postponed, out.QuietIn, out.AskIn} {
			if wait > 0 {
				next = min(next, wait)
			}
		}
	}
	return next, refused
}
