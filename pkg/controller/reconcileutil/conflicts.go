// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcileutil

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// ConflictDelay is the usual delay before the first retry after a conflict: the cache needs a
	// moment to receive what somebody else wrote.
	ConflictDelay = 100 * time.Millisecond
	// longestConflictDelay limits the delay, which doubles with each conflict of a request.
	longestConflictDelay = 30 * time.Second
	// routineConflicts is how many conflicts of a request in a row are not logged.
	routineConflicts = 5
)

// conflict marks an error that RetryConflicts retries.
type conflict struct{ error }

func (c conflict) Unwrap() error { return c.error }

// RequeueOnConflict is the result of a reconciler that RetryConflicts wraps. It marks a conflict for
// a retry.
func RequeueOnConflict(result ctrl.Result, err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return ctrl.Result{}, conflict{err}
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return result, nil
}

// RetryConflicts retries conflicts that RequeueOnConflict marked, after ConflictDelay and then after
// longer and longer delays: retries at a fixed rate would keep a slow hub slow. Conflicts are
// expected and appear in no event or condition, and in the log only when many follow each other.
func RetryConflicts(r reconcile.Reconciler) reconcile.Reconciler {
	return RetryConflictsAfter(ConflictDelay, r)
}

// RetryConflictsAfter is RetryConflicts with another first delay.
func RetryConflictsAfter(first time.Duration, r reconcile.Reconciler) reconcile.Reconciler {
	return &conflicts{Reconciler: r, backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](first, longestConflictDelay)}
}

type conflicts struct {
	reconcile.Reconciler
	backoff workqueue.TypedRateLimiter[ctrl.Request]
}

// Reconcile retries conflicts.
func (c *conflicts) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	result, err := c.Reconciler.Reconcile(ctx, req)
	var marked conflict
	if !errors.As(err, &marked) {
		c.backoff.Forget(req)
		return result, err
	}
	delay := c.backoff.When(req)
	if n := c.backoff.NumRequeues(req); n > routineConflicts {
		log.FromContext(ctx).Info("Conflicts continue; retrying later", "conflicts", n, "retryAfter", delay, "conflict", marked.Error())
	}
	return ctrl.Result{RequeueAfter: delay}, nil
}
