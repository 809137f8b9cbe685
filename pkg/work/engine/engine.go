// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/work/engine/availability"
	"fleetgate.io/fleetgate/pkg/work/engine/compare"
	"fleetgate.io/fleetgate/pkg/work/engine/memberwatch"
	"fleetgate.io/fleetgate/pkg/work/engine/merge"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// attempts limits the retries for one manifest whose object changes between read and write.
const attempts = 5

// Engine applies the objects of one family's works to a member.
type Engine struct {
	Dialect
	member  dynamic.Interface
	stored  inventory
	kinds   *servedKinds
	merger  merge.Merger
	health  *availability.Evaluator
	clock   clock.PassiveClock
	tuning  Tuning
	retries workqueue.TypedRateLimiter[string] // by work, after refused manifests
	family  Family
	changes chan event.GenericEvent
	watch   *memberwatch.View
	caches  *caches
	// namespaces are those of the member, if some are reserved.
	namespaces dynamic.ResourceInterface
}

// task is a work whose manifests are being applied.
type task struct {
	Work
	cache *objects
	// entries is the ledger, and runs the part with objects that run to completion.
	entries []Entry
	runs    map[manifest.Key]Entry
	// observed returns what the watch knows of an object.
	observed func(Item) memberwatch.Observation
	// lastState returns the last seen state of an expiring object; nil if unknown.
	lastState func(types.UID) *unstructured.Unstructured
}

// had reports whether the ledger contains an object with this UID.
func (t task) had(uid types.UID) bool {
	return slices.ContainsFunc(t.entries, func(entry Entry) bool { return entry.UID == uid })
}

// run applies the items wave by wave. Manifests are in the order of the items.
func (e *Engine) run(ctx context.Context, t task, items []Item) []ManifestResult {
	results := RefuseAll(items, nil).Manifests
	for _, wave := range e.inWaves(items) {
		var group errgroup.Group
		group.SetLimit(e.tuning.Manifests)
		for _, place := range wave {
			group.Go(func() error {
				results[place] = e.process(ctx, t, items[place])
				return nil
			})
		}
		_ = group.Wait() // results carry the errors
	}
	return results
}

// process applies one manifest, unless the object is unchanged according to the watch.
func (e *Engine) process(ctx context.Context, t task, it Item) ManifestResult {
	out := e.applyOne(ctx, t, it)
	out.Contest, out.ContestEndsIn = t.cache.contest(it, e.clock.Now())
	return out
}

func (e *Engine) applyOne(ctx context.Context, t task, it Item) ManifestResult {
	observed := t.observed(it)
	if known, ok := t.cache.unchanged(it, observed, e.clock.Now()); ok {
		known.Ref = it.Ref
		return known
	}
	if out := e.refuseNamespace(ctx, it); out != nil {
		return *out
	}
	it, err := e.decoded(it)
	if err != nil {
		return ManifestResult{Ref: it.Ref, Owned: true, Err: err}
	}
	if observed.Absent() && e.isCreated(it) {
		if out, done := e.writeIfDue(ctx, t, e.adoptMemberFields(it, nil), nil); done {
			return out
		}
	}
	for range attempts {
		if out, done := e.attempt(ctx, t, it); done {
			return out
		}
	}
	return ManifestResult{Ref: it.Ref, Owned: true, Err: errors.New("the object kept changing while it was looked at")}
}

// attempt reads the object once and changes it at most once. It returns false if the object changed
// in between.
func (e *Engine) attempt(ctx context.Context, t task, it Item) (ManifestResult, bool) {
	live, err := e.find(ctx, it)
	if err != nil {
		return e.failed(it, nil, NotFound, err), true
	}
	it = e.adoptMemberFields(it, live)
	switch it.Mode.Method {
	case Compare:
		return e.reportDiff(ctx, t, it, live)
	case ReadOnly:
		return e.read(ctx, t, it, live), true
	}
	if live != nil {
		if t.endedAndGoes(ctx, it, live) {
			return e.applied(ctx, t, it, live, live), true
		}
		if refused := e.mayWrite(ctx, t, it, live); refused != nil {
			out := resultOf(it, live, t.Record)
			out.Refused, out.Left = refused, it.leaves
			return out, true
		}
		if e.returns(t, live) && it.Mode.owns() {
			return e.readmit(ctx, t, it, live)
		}
		if out, done := e.refuseIfDiffers(ctx, t, it, live); !done || out != nil {
			return ptr.Deref(out, ManifestResult{}), done
		}
		if e.isRetained(live) && it.Mode.owns() {
			return e.readmit(ctx, t, it, live)
		}
		it.takenOver = e.takesOver(t, live)
	}
	return e.writeIfDue(ctx, t, it, live)
}

// writeIfDue writes the object, unless a correction has to wait. An object that ran to completion and is
// deleted is not re-created.
func (e *Engine) writeIfDue(ctx context.Context, t task, it Item, live *unstructured.Unstructured) (ManifestResult, bool) {
	if live == nil {
		if out, ran := t.ran(ctx, it); ran {
			return out, true
		}
	}
	if wait := t.cache.wait(it, e.clock.Now()); wait > 0 {
		return e.postpone(ctx, t, it, live, wait), true
	}
	return e.writeOnce(ctx, t, it, live)
}

// isCreated reports whether a write of a missing object is a create request. If the object exists
// after all, a create fails and the engine checks its owners first; a server-side apply would
// change it.
func (e *Engine) isCreated(it Item) bool {
	switch it.Mode.Method {
	case Replace, CreateOnly:
		return true
	case Merge:
		return e.merges(it, nil)
	}
	return false
}

// read returns the result for an object that is only read. live can be nil.
func (e *Engine) read(ctx context.Context, t task, it Item, live *unstructured.Unstructured) ManifestResult {
	if live == nil {
		return ManifestResult{Ref: it.Ref, Final: true}
	}
	return e.applied(ctx, t, it, live, live)
}

// writeOnce writes the object and returns the result.
func (e *Engine) writeOnce(ctx context.Context, t task, it Item, live *unstructured.Unstructured) (ManifestResult, bool) {
	written, err := e.write(ctx, t, it, live)
	switch {
	case err == nil && written.GetUID() == "":
		return ManifestResult{Ref: it.Ref, Final: true, Refused: &refusal.Refusal{Reason: NotWritten,
			Message: "The member answers objects of this kind and keeps none: " + e.Remedies.KeptNone}}, true
	case err == nil:
		return e.verified(ctx, t, it, live, written), true
	case changedSince(err, live):
		return ManifestResult{}, false
	case isUnserved(err):
		return e.unserved(it, err), true
	}
	out := e.failed(it, live, NotWritten, err)
	out.Owned = out.Err != nil || live != nil && OwnershipOf(live.GetOwnerReferences(), t.Record).Ours
	if live == nil || !isImmutable(err) {
		return out, true
	}
	if against := e.mayRecreate(it, live, t.Record); against != "" {
		out.Refused.Message = Shorten(out.Refused.Message + ". " + against)
		return out, true
	}
	err = deleteExactly(ctx, e.at(it), live, metav1.DeletePropagationBackground)
	if err == nil || changedSince(err, live) {
		return ManifestResult{}, false // the next attempt re-creates it
	}
	out = e.failed(it, live, NotWritten, err)
	out.Owned = true
	return out, true
}

// unserved returns the result of a write to a path that the member does not serve: the kind was
// removed, or it is a built-in kind that does not support the request.
func (e *Engine) unserved(it Item, err error) ManifestResult {
	out := e.failed(it, nil, NotWritten, err)
	out.unserved, out.Owned = true, false
	if kind := it.object.GroupVersionKind(); !e.merger.Known.Recognizes(kind) {
		out.Refused = noKind(kind)
	}
	return out
}

// verified returns the result of a successful write, after comparing the response with the
// manifest.
func (e *Engine) verified(ctx context.Context, t task, it Item, live, written *unstructured.Unstructured) ManifestResult {
	if live == written && it.Mode.Leave.isApplied(live) {
		return e.applied(ctx, t, it, live, written) // others decide the remaining fields
	}
	return e.resultFor(ctx, t, it, live, written, e.verify(it, written))
}

// applied returns the result of a successful write, or of an object that needed none.
func (e *Engine) applied(ctx context.Context, t task, it Item, live, written *unstructured.Unstructured) ManifestResult {
	return e.resultFor(ctx, t, it, live, written, nil)
}

// resultFor returns the result for an object that was written or read. refused is nil if the object
// has all fields of the manifest.
func (e *Engine) resultFor(ctx context.Context, t task, it Item, live, written *unstructured.Unstructured, refused *refusal.Refusal) ManifestResult {
	out := resultOf(it, written, t.Record)
	out.Refused = refused
	out.Owned, out.Availability = out.Owned || it.Mode.owns(), e.health.Of(written, it.object, e.HealthAnnotations)
	if out.run = it.runOf(written); out.run.ManifestHash != "" && out.run.Result == "" && it.expires {
		e.watch.FollowEnd(it.target(), written)
	}
	if out.Availability.State == availability.NotYet {
		out.Availability = e.withClass(ctx, it, written, out.Availability)
		out.pods = availability.PodsOf(written)
	}
	out.Availability.Message = Shorten(out.Availability.Message)
	if it.Mode.Whole {
		out.Drift = Differences{Fields: compare.Objects(e.comparable(it, written), written)}
	}
	if it.Mode.Mirror {
		out.Mirrored = mirrored(written)
	}
	var undone *Contest
	if live == nil || live.GetResourceVersion() != written.GetResourceVersion() {
		undone = contestOf(live, written, e.managerOf(it))
	}
	t.cache.store(it, written.GetResourceVersion(), out, undone, e.clock.Now())
	if it.Mode.Method == Replace {
		t.cache.setShape(it, written)
	}
	return out
}

// find gets the object of a manifest; nil if it does not exist.
func (e *Engine) find(ctx context.Context, it Item) (*unstructured.Unstructured, error) {
	live, err := e.at(it).Get(ctx, it.Ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return live, err
}

// mayWrite returns why an existing object must not be written, or nil.
func (e *Engine) mayWrite(ctx context.Context, t task, it Item, live *unstructured.Unstructured) *refusal.Refusal {
	s := OwnershipOf(live.GetOwnerReferences(), t.Record)
	s.Returns = e.returns(t, live)
	if refused := t.Owner.MayWrite(ctx, s, it.object); refused != nil {
		return refused
	}
	if live.GetDeletionTimestamp() == nil {
		return nil
	}
	text := "The object is being deleted on the member; it is made again when it is gone"
	if finalizers := live.GetFinalizers(); len(finalizers) > 0 {
		text += fmt.Sprintf(". It waits for finalizers %q", finalizers)
	}
	return &refusal.Refusal{Reason: NotWritten, Message: Shorten(text)}
}

// postpone returns the result of an object whose next correction has to wait. It reads
// the object first, because it may be up to date already.
func (e *Engine) postpone(ctx context.Context, t task, it Item, live *unstructured.Unstructured, wait time.Duration) ManifestResult {
	if live == nil {
		return ManifestResult{Ref: it.Ref, Owned: true, Postponed: wait}
	}
	if differs, err := e.differs(ctx, t, it, live); err == nil && !differs {
		return e.applied(ctx, t, it, live, live)
	}
	out := resultOf(it, live, t.Record)
	out.Postponed = wait
	return out
}

// mirrored returns the part of an object that is reported as its status.
func mirrored(object *unstructured.Unstructured) *unstructured.Unstructured {
	status, found := object.Object["status"]
	if !found {
		return nil
	}
	report := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	report.SetGroupVersionKind(object.GroupVersionKind())
	report.SetName(object.GetName())
	return report
}

func (e *Engine) at(it Item) dynamic.ResourceInterface {
	if it.namespaced {
		return e.member.Resource(it.resource).Namespace(it.Ref.Namespace)
	}
	return e.member.Resource(it.resource)
}

// changedSince reports whether the error means that the object changed since the attempt read it.
func changedSince(err error, live *unstructured.Unstructured) bool {
	if live == nil {
		return apierrors.IsAlreadyExists(err)
	}
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err) && !isFieldConflict(err)
}
