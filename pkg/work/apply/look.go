// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/apply/memberwatch"
)

// look is one look at one Work.
type look struct {
	*Reconciler
	work     *placementv1beta1.Work
	record   *placementv1beta1.AppliedWork
	strategy placementv1beta1.ApplyStrategy
	memory   *workMemory
}

// reconcileWork brings a Work that is not deleted to the member.
func (r *Reconciler) reconcileWork(ctx context.Context, work *placementv1beta1.Work) (reconcile.Result, error) {
	memory := r.memory.of(work.Name)
	member, err := r.membership(ctx, r.hub)
	if err != nil {
		return reconcile.Result{}, err
	}
	record, err := r.ensureRecord(ctx, work.Name, member)
	if err != nil && !apierrors.IsForbidden(err) {
		return reconcile.Result{}, err
	}
	if record != nil && record.DeletionTimestamp != nil {
		return reconcile.Result{RequeueAfter: recheckDeletion}, nil // made again when it is gone
	}
	items, planErr := r.plan(work)
	if planErr != nil {
		return reconcile.Result{}, planErr
	}
	l := look{Reconciler: r, work: work, record: record, strategy: withDefaults(work.Spec.ApplyStrategy), memory: memory}
	switch {
	case err != nil:
		return l.report(ctx, refuseAll(items, deniedRecord(err)))
	case !r.isOurs(record, member):
		return l.report(ctx, refuseAll(items, foreignRecord(record)))
	case l.strategy.Type == placementv1beta1.ReportDiff:
		r.watcher.Follow(work.Name, followed(items, record.Status.AppliedResources), groupsOf(items))
		outcomes := l.run(ctx, items)
		return l.report(ctx, brought{outcomes: outcomes, err: failures(outcomes)})
	}
	b := l.bring(ctx, items)
	if lacking := ownKinds(items, b.outcomes); len(lacking) > 0 && memory.isNew(work.Generation) && r.engine.awaitKinds(ctx, r.kinds, lacking) {
		if items, err = r.plan(work); err != nil {
			return reconcile.Result{}, err
		}
		b = l.bring(ctx, items)
	}
	return l.report(ctx, b)
}

// plan is the plan of a Work.
func (r *Reconciler) plan(work *placementv1beta1.Work) ([]item, error) {
	manifests := work.Spec.Workload.Manifests
	return r.memory.of(work.Name).planned(sumOf(r.memory.seed, manifests), manifests, r.kinds, r.options.House...)
}

// brought is what came of bringing items to the member.
type brought struct {
	// outcomes are nil if it did not come to applying.
	outcomes []outcome
	// denied says what the agent may not remove, a sentence for each object.
	denied []string
	// unsure is set when it is not clear yet what may be removed.
	unsure bool
	// err is what could not be found out.
	err error
}

// bring applies items and removes what is left of earlier ones.
func (l look) bring(ctx context.Context, items []item) brought {
	before := known(l.record.Status.AppliedResources, l.work.Status.ManifestConditions)
	err := l.writeLedger(ctx, l.record, intended(l.record.Status.AppliedResources, before, items))
	if apierrors.IsForbidden(err) {
		return refuseAll(items, deniedRecord(err))
	}
	if err != nil {
		return brought{err: err}
	}
	l.watcher.Follow(l.work.Name, followed(items, before), groupsOf(items))
	outcomes := l.run(ctx, items)
	left := leftovers(before, items)
	unsure, askErr := l.isUnsure(ctx, left)
	if unsure || askErr != nil {
		left = nil
	}
	pruned, failure := l.engine.prune(ctx, ownerOf(l.record), left, metav1.DeletePropagationBackground, l.heirsOf(l.work))
	ledger := recorded(l.record.Status.AppliedResources, before, items, outcomes, pruned.gone)
	return brought{
		outcomes: outcomes,
		denied:   pruned.denied,
		unsure:   unsure,
		err:      errors.Join(askErr, failure, l.writeLedger(ctx, l.record, ledger), failures(outcomes)),
	}
}

// isUnsure reports whether what has left the Work may be about to join another.
func (l look) isUnsure(ctx context.Context, left []entry) (bool, error) {
	if len(left) == 0 {
		return false, nil
	}
	return l.isAhead(ctx, l.work)
}

// run has the engine process the items.
func (l look) run(ctx context.Context, items []item) []outcome {
	owner := ownerOf(l.record)
	mirror := l.work.Spec.ReportBackStrategy != nil && l.work.Spec.ReportBackStrategy.Type == placementv1beta1.ReportBackMirror
	l.memory.begin(items, terms(l.strategy, owner, mirror), l.options.Clock.Now(), l.options.Resync)
	return l.appliers.run(ctx, l.work, l.engine, task{
		owner:      owner,
		strategy:   l.strategy,
		mirror:     mirror,
		compatible: func(other string) bool { return l.shares(ctx, other, l.strategy) },
		memory:     l.memory,
		saw:        func(it item) memberwatch.Sighting { return l.watcher.Saw(it.target()) },
	}, items)
}

// failures is the error of what could not be found out.
func failures(outcomes []outcome) error {
	var errs []error
	for _, out := range outcomes {
		if out.err != nil {
			errs = append(errs, fmt.Errorf("applying %s: %w", called(out.id), out.err))
		}
	}
	return errors.Join(errs...)
}

// report writes the status that follows from what was brought, and says when to
// look again.
func (l look) report(ctx context.Context, b brought) (reconcile.Result, error) {
	failure := b.err
	if b.outcomes == nil && failure != nil {
		l.memory.ended(l.work.Generation, false)
		return reconcile.Result{Priority: ptr.To(retryPriority)}, failure
	}
	before := l.work.Status.DeepCopy()
	now := metav1.NewTime(l.options.Clock.Now())
	status := desiredStatus(l.work, b.outcomes, now)
	blind := l.watcher.Blind(l.work.Name)
	setWatched(&status, blind, l.options.Blind, l.work.Generation, now)
	setRemoved(&status, b.denied, l.work.Generation, now)
	failure = errors.Join(failure, l.writeStatus(ctx, l.work, status))
	if failure == nil {
		l.tellOfContests(before.ManifestConditions, status.ManifestConditions)
	}
	next := l.nextLook(b, failure == nil)
	if len(blind) > 0 {
		next.RequeueAfter = min(next.RequeueAfter, l.options.Blind)
	}
	if failure != nil {
		return reconcile.Result{Priority: next.Priority}, failure
	}
	return next, nil
}

// nextLook is soon for what was refused or postponed, and late otherwise. Whatever
// it is for, it comes after Works that changed.
func (l look) nextLook(b brought, well bool) reconcile.Result {
	next := l.options.Resync + rand.N(l.options.Resync)
	if b.unsure {
		next = siblingPause
	}
	refused := len(b.denied) > 0
	for _, out := range b.outcomes {
		refused = refused || out.refused != nil && !out.settled
		for _, wait := range []time.Duration{out.postponed, out.quietIn} {
			if wait > 0 {
				next = min(next, wait)
			}
		}
	}
	if first := l.memory.ended(l.work.Generation, well && !refused); first || !refused {
		l.retries.Forget(l.work.Name)
	}
	if !refused {
		return reconcile.Result{RequeueAfter: next, Priority: ptr.To(resyncPriority)}
	}
	return reconcile.Result{RequeueAfter: min(next, l.retries.When(l.work.Name)), Priority: ptr.To(retryPriority)}
}

// shares reports whether the Work of another AppliedWork lets its objects have a second
// owner that writes them the same way. One that is gone has no say, and another hub's
// cannot be asked.
func (r *Reconciler) shares(ctx context.Context, other string, ours placementv1beta1.ApplyStrategy) bool {
	foreign, err := r.isOfAnotherHub(ctx, other)
	if foreign || err != nil {
		return false
	}
	work := &placementv1beta1.Work{}
	name, _ := r.options.workOf(other)
	err = r.hub.Get(ctx, client.ObjectKey{Namespace: r.options.HubNamespace, Name: name}, work)
	if apierrors.IsNotFound(err) {
		return true
	}
	theirs := withDefaults(work.Spec.ApplyStrategy)
	return err == nil && theirs.AllowCoOwnership && theirs.Type == ours.Type
}

// terms is all that outcomes depend on besides manifest and object.
func terms(strategy placementv1beta1.ApplyStrategy, owner metav1.OwnerReference, mirror bool) string {
	text, err := json.Marshal(strategy)
	if err != nil {
		return string(owner.UID)
	}
	return fmt.Sprint(owner.UID, mirror, string(text))
}
