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
	// FirstRetry is the first delay before a work with a refused manifest is retried.
	FirstRetry   = time.Second
	longestRetry = 5 * time.Minute

	// WaitPause is the delay before a removal is retried that waits for something without an event.
	WaitPause = 5 * time.Second

	// FirstErrorRetry is the first delay after an error. The longest delay is shorter than after a
	// refusal: most errors are an unreachable member, which recovers for all works at once.
	FirstErrorRetry   = 200 * time.Millisecond
	longestErrorRetry = time.Minute
)

// NewRetries returns the exponential backoff for works with refused manifests.
func NewRetries() workqueue.TypedRateLimiter[string] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[string](FirstRetry, longestRetry)
}

// ControllerOptions returns the options of a controller that reconciles works.
func (e Tuning) ControllerOptions() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: e.Works,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](FirstErrorRetry, longestErrorRetry),
	}
}

// enqueue enqueues a work after a change on the member that is not our own.
func (e *Engine) enqueue(ctx context.Context, changed memberwatch.Event) {
	work, expected := e.family.WorkOf(changed)
	if expected {
		return
	}
	if changed.NewKind {
		e.retries.Forget(changed.Work)
		e.ForgetPlan(changed.Work)
	}
	select {
	case e.changes <- event.GenericEvent{Object: work}:
	case <-ctx.Done():
	}
}

// Changes returns the works that changes on the member concern.
func (e *Engine) Changes() <-chan event.GenericEvent { return e.changes }

// NextReconcile returns when to reconcile a work again: soon if a correction was postponed, late
// otherwise. refused reports whether a refusal may be retried, by [NewRetries]. If again is not nil
// and returns a time for a result, that time applies instead.
func (e *Engine) NextReconcile(work string, r Result, again func(ManifestResult) time.Duration) (next time.Duration, refused bool) {
	next = e.tuning.Resync + rand.N(e.tuning.Resync)
	if len(e.Unwatched(work)) > 0 {
		next = min(next, e.tuning.Unwatched)
	}
	if r.Waits {
		next = min(next, WaitPause)
	}
	refused = len(r.Denied) > 0
	for _, out := range r.Manifests {
		if again != nil {
			if in := again(out); in > 0 {
				next = min(next, in)
				continue
			}
		}
		refused = refused || out.isRetriable()
		for _, wait := range []time.Duration{out.Postponed, out.ContestEndsIn, out.ReadPodsIn} {
			if wait > 0 {
				next = min(next, wait)
			}
		}
	}
	return next, refused
}
