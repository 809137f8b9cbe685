// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

// report writes the status of the ManifestWork and returns when to reconcile it again.
func (r *Reconciler) report(ctx context.Context, p *planned, b engine.Result) (reconcile.Result, error) {
	if b.Manifests == nil && b.Err != nil {
		return reconcile.Result{}, b.Err
	}
	now := metav1.NewTime(r.options.Clock.Now())
	status := desiredStatus(p.work, b.Manifests, now)
	c := conditionsOf(&status.Conditions, p.work.Generation, now)
	c.removed(b.Denied)
	c.retained(p.mark, b.Unreleased)
	woken := completed(p.work.Status) > completed(status)
	failure := errors.Join(b.Err, r.writeStatus(ctx, p.work, status))
	if failure != nil {
		return reconcile.Result{}, failure
	}
	r.progress.end(p.work)
	if woken {
		return reconcile.Result{RequeueAfter: engine.CacheDelay}, nil
	}
	next := r.nextReconcile(p.work.Name, b)
	if p.job.RetainsRemoved {
		next = min(next, retention.Recheck)
	}
	return reconcile.Result{RequeueAfter: next}, nil
}

// completed counts the Complete conditions of a ManifestWork and its manifests.
func completed(status workv1.ManifestWorkStatus) int {
	count := 0
	if apimeta.IsStatusConditionTrue(status.Conditions, workv1.ConditionComplete) {
		count++
	}
	for _, m := range status.ResourceStatus.Manifests {
		if apimeta.IsStatusConditionTrue(m.Conditions, workv1.ConditionComplete) {
			count++
		}
	}
	return count
}

func (r *Reconciler) writeStatus(ctx context.Context, work *workv1.ManifestWork, status workv1.ManifestWorkStatus) error {
	if apiequality.Semantic.DeepEqual(work.Status, status) {
		return nil
	}
	before := work.DeepCopy()
	work.Status = status
	if err := r.hub.Status().Patch(ctx, work, reconcileutil.PatchFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of ManifestWork %q: %w", work.Name, err)
	}
	r.progress.wrote(work, r.options.Clock.Now())
	return nil
}

// nextReconcile is soon after a refusal or postponement, and late otherwise.
func (r *Reconciler) nextReconcile(work string, b engine.Result) time.Duration {
	next, refused := r.engine.NextReconcile(work, b, again)
	if !refused {
		r.progress.retries.Forget(work)
		return next
	}
	return min(next, r.progress.retries.When(work))
}

// again is the delay before a refusal for a missing right of the executor is retried: a new right
// triggers no event.
func again(out engine.ManifestResult) time.Duration {
	if out.Refused != nil && out.Refused.Reason == notAllowed {
		return retryInterval
	}
	return 0
}
