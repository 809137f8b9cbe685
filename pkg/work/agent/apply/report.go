// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// EventContested is the reason of the event for a Work when one of its objects becomes contested.
const EventContested = "Contested"

// EventRetained is the reason of the event for each object that a Work released and that stays on
// the member.
const EventRetained = "Retained"

// report writes the status of the Work and returns when to reconcile it again.
func (r *Reconciler) report(ctx context.Context, p *planned, b engine.Result) (reconcile.Result, error) {
	work, failure := p.work, b.Err
	if b.Manifests == nil && failure != nil {
		r.throttle.of(work.Name).ended(work.Generation, false)
		return reconcile.Result{Priority: ptr.To(retryPriority)}, failure
	}
	r.recordRetained(ctx, work, b.Retained)
	r.engine.ReadPods(ctx, work.Name, &b)
	before := work.Status.DeepCopy()
	now := metav1.NewTime(r.options.Clock.Now())
	status := desiredStatus(work, b.Manifests, now)
	unwatched := r.engine.Unwatched(work.Name)
	c := conditionsOf(&status.Conditions, work.Generation, now)
	c.watched(unwatched, r.options.Unwatched)
	c.removed(b.Denied)
	c.retained(markOf(p.record), b.Unreleased)
	failure = errors.Join(failure, r.writeStatus(ctx, work, status))
	if failure == nil {
		r.recordContests(work, before.ManifestConditions, status.ManifestConditions)
	}
	next := r.nextReconcile(work, b, failure == nil)
	if failure != nil {
		return reconcile.Result{Priority: next.Priority}, failure
	}
	return next, nil
}

func (r *Reconciler) writeStatus(ctx context.Context, work *placementv1beta1.Work, status placementv1beta1.WorkStatus) error {
	if sameStatus(&work.Status, &status) {
		return nil
	}
	before := work.DeepCopy()
	work.Status = status
	if err := r.hub.Status().Patch(ctx, work, reconcileutil.PatchFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of Work %q: %w", work.Name, err)
	}
	r.throttle.wrote(work)
	return nil
}

// recordContests emits an event for each manifest that became contested.
func (r *Reconciler) recordContests(work *placementv1beta1.Work, before, after []placementv1beta1.ManifestCondition) {
	for _, m := range after {
		c := apimeta.FindStatusCondition(m.Conditions, placementv1beta1.ConditionContested)
		previous := reported(before, m.Identifier)
		if c == nil || apimeta.IsStatusConditionTrue(previous.Conditions, placementv1beta1.ConditionContested) {
			continue
		}
		r.events.Eventf(work, nil, corev1.EventTypeWarning, EventContested, "Repair", "%s: %s", manifest.Ref(m.Identifier), c.Message)
	}
}

// nextReconcile is soon after a refusal or postponement, and late otherwise. Changed Works always have a
// higher priority.
func (r *Reconciler) nextReconcile(work *placementv1beta1.Work, b engine.Result, succeeded bool) reconcile.Result {
	next, refused := r.engine.NextReconcile(work.Name, b, nil)
	if b.Unsure {
		next = min(next, siblingInterval)
	}
	if first := r.throttle.of(work.Name).ended(work.Generation, succeeded && !refused); first || !refused {
		r.throttle.retries.Forget(work.Name)
	}
	if !refused {
		return reconcile.Result{RequeueAfter: next, Priority: ptr.To(resyncPriority)}
	}
	return reconcile.Result{RequeueAfter: min(next, r.throttle.retries.When(work.Name)), Priority: ptr.To(retryPriority)}
}

// sameStatus compares two statuses. It runs in every reconcile, mostly for a hundred unchanged
// manifests; reflection would cost more than the rest of the reconcile.
func sameStatus(a, b *placementv1beta1.WorkStatus) bool {
	return slices.EqualFunc(a.Conditions, b.Conditions, sameCondition) &&
		slices.EqualFunc(a.ManifestConditions, b.ManifestConditions, func(a, b placementv1beta1.ManifestCondition) bool {
			return a.Identifier == b.Identifier && slices.EqualFunc(a.Conditions, b.Conditions, sameCondition) &&
				same(a.DriftDetails, b.DriftDetails) && same(a.DiffDetails, b.DiffDetails) &&
				same(a.BackReportedStatus, b.BackReportedStatus)
		})
}

func sameCondition(a, b metav1.Condition) bool {
	sameTime := a.LastTransitionTime.Equal(&b.LastTransitionTime)
	a.LastTransitionTime = b.LastTransitionTime
	return sameTime && a == b
}

// same compares optional parts, which few manifests have.
func same[T any](a, b *T) bool {
	return a == nil && b == nil || apiequality.Semantic.DeepEqual(a, b)
}
