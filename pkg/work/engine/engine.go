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
	member   dynamic.Interface
	stored   inventory
	kinds    *servedKinds
	merger   merge.Merger
	health   *availability.Evaluator
	clock    clock.PassiveClock
	effort   Effort
	retries  workqueue.TypedRateLimiter[string] // by work, after refused manifests
	family   Family
	touched  chan event.GenericEvent
	watch    *memberwatch.View
	memories *memories
	// namespaces are those of the member, if some are reserved.
	namespaces dynamic.ResourceInterface
}

// task is a work whose manifests are being applied.
type task struct {
	Work
	memory *objects
	// entries is the ledger, and runs the part with objects that run to completion.
	entries []Entry
	runs    map[manifest.Key]Entry
	// saw returns what the watch knows of an object.
	saw func(Item) memberwatch.Sighting
}

// had reports whether the ledger contains an object with this UID.
func (t task) had(uid types.UID) bool {
	return slices.ContainsFunc(t.entries, func(entry Entry) bool { return entry.UID == uid })
}

// run applies the items wave by wave. Outcomes are in the order of the items.
func (e *Engine) run(ctx context.Context, t task, items []Item) []Outcome {
	outcomes := RefuseAll(items, nil).Outcomes
	for _, wave := range e.inWaves(items) {
		var group errgroup.Group
		group.SetLimit(e.effort.Manifests)
		for _, place := range wave {
			group.Go(func() error {
				outcomes[place] = e.process(ctx, t, items[place])
				return nil
			})
		}
		_ = group.Wait() // outcomes carry the errors
	}
	return outcomes
}

// process applies one manifest, unless the object is unchanged according to the watch.
func (e *Engine) process(ctx context.Context, t task, it Item) Outcome {
	out := e.settleOne(ctx, t, it)
	out.Against, out.QuietIn = t.memory.contest(it, e.clock.Now())
	return out
}

func (e *Engine) settleOne(ctx context.Context, t task, it Item) Outcome {
	saw := t.saw(it)
	if known, ok := t.memory.unchanged(it, saw, e.clock.Now()); ok {
		known.Ref = it.Ref
		return known
	}
	if out := e.refuseNamespace(ctx, it); out != nil {
		return *out
	}
	it, err := e.decoded(it)
	if err != nil {
		return Outcome{Ref: it.Ref, Holds: true, Err: err}
	}
	if saw.Absent() && e.isCreated(it) {
		if out, done := e.bring(ctx, t, e.adoptMemberFields(it, nil), nil); done {
			return out
		}
	}
	for range attempts {
		if out, done := e.attempt(ctx, t, it); done {
			return out
		}
	}
	return Outcome{Ref: it.Ref, Holds: true, Err: errors.New("the object kept changing while it was looked at")}
}

// attempt reads the object once and changes it at most once. It returns false if the object changed
// in between.
func (e *Engine) attempt(ctx context.Context, t task, it Item) (Outcome, bool) {
	live, err := e.find(ctx, it)
	if err != nil {
		return e.failed(it, nil, NotFound, err), true
	}
	it = e.adoptMemberFields(it, live)
	switch it.Way.By {
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
			out := seen(it, live, t.Record)
			out.Refused, out.Left = refused, it.leaves
			return out, true
		}
		if e.returns(t, live) && it.Way.owns() {
			return e.readmit(ctx, t, it, live)
		}
		if out, done := e.stand(ctx, t, it, live); !done || out != nil {
			return ptr.Deref(out, Outcome{}), done
		}
		if e.isRetained(live) && it.Way.owns() {
			return e.readmit(ctx, t, it, live)
		}
		it.takenOver = e.takesOver(t, live)
	}
	return e.bring(ctx, t, it, live)
}

// bring writes the object, unless a correction has to wait. An object that ran to completion and is
// deleted is not re-created.
func (e *Engine) bring(ctx context.Context, t task, it Item, live *unstructured.Unstructured) (Outcome, bool) {
	if live == nil {
		if out, ran := t.ran(ctx, it); ran {
			return out, true
		}
	}
	if wait := t.memory.wait(it, e.clock.Now()); wait > 0 {
		return e.postpone(ctx, t, it, live, wait), true
	}
	return e.writeOnce(ctx, t, it, live)
}

// isCreated reports whether a write of a missing object is a create request. If the object exists
// after all, a create fails and the engine checks its owners first; a server-side apply would
// change it.
func (e *Engine) isCreated(it Item) bool {
	switch it.Way.By {
	case Replace, CreateOnly:
		return true
	case Merge:
		return e.merges(it, nil)
	}
	return false
}

// read returns the outcome for an object that is only read. live can be nil.
func (e *Engine) read(ctx context.Context, t task, it Item, live *unstructured.Unstructured) Outcome {
	if live == nil {
		return Outcome{Ref: it.Ref, Settled: true}
	}
	return e.applied(ctx, t, it, live, live)
}

// writeOnce writes the object and returns the outcome.
func (e *Engine) writeOnce(ctx context.Context, t task, it Item, live *unstructured.Unstructured) (Outcome, bool) {
	written, err := e.write(ctx, t, it, live)
	switch {
	case err == nil && written.GetUID() == "":
		return Outcome{Ref: it.Ref, Settled: true, Refused: &refusal.Refusal{Reason: NotWritten,
			Message: "The member answers objects of this kind and keeps none: " + e.Remedies.KeptNone}}, true
	case err == nil:
		return e.verified(ctx, t, it, live, written), true
	case overtaken(err, live):
		return Outcome{}, false
	case isUnserved(err):
		return e.unserved(it, err), true
	}
	out := e.failed(it, live, NotWritten, err)
	out.Holds = out.Err != nil || live != nil && OwnershipOf(live.GetOwnerReferences(), t.Record).Ours
	if live == nil || !isImmutable(err) {
		return out, true
	}
	if against := e.mayRecreate(it, live, t.Record); against != "" {
		out.Refused.Message = Shorten(out.Refused.Message + ". " + against)
		return out, true
	}
	err = deleteExactly(ctx, e.at(it), live, metav1.DeletePropagationBackground)
	if err == nil || overtaken(err, live) {
		return Outcome{}, false // the next attempt re-creates it
	}
	out = e.failed(it, live, NotWritten, err)
	out.Holds = true
	return out, true
}

// unserved returns the outcome of a write to a path that the member does not serve: the kind was
// removed, or it is a built-in kind that does not support the request.
func (e *Engine) unserved(it Item, err error) Outcome {
	out := e.failed(it, nil, NotWritten, err)
	out.unserved, out.Holds = true, false
	if kind := it.object.GroupVersionKind(); !e.merger.Known.Recognizes(kind) {
		out.Refused = noKind(kind)
	}
	return out
}

// verified returns the outcome of a successful write, after comparing the response with the
// manifest.
func (e *Engine) verified(ctx context.Context, t task, it Item, live, written *unstructured.Unstructured) Outcome {
	if live == written && it.Way.Leave.isApplied(live) {
		return e.applied(ctx, t, it, live, written) // others decide the remaining fields
	}
	return e.outcome(ctx, t, it, live, written, e.verify(it, written))
}

// applied returns the outcome of a successful write, or of an object that needed none.
func (e *Engine) applied(ctx context.Context, t task, it Item, live, written *unstructured.Unstructured) Outcome {
	return e.outcome(ctx, t, it, live, written, nil)
}

// outcome returns the outcome for an object that was written or read. refused is nil if the object
// has all fields of the manifest.
func (e *Engine) outcome(ctx context.Context, t task, it Item, live, written *unstructured.Unstructured, refused *refusal.Refusal) Outcome {
	out := seen(it, written, t.Record)
	out.Refused = refused
	out.Holds, out.Availability = out.Holds || it.Way.owns(), e.health.Of(written, it.object, e.HealthAnnotations)
	out.run = it.runOf(written)
	if out.Availability.State == availability.NotYet {
		out.Availability = e.withClass(ctx, it, written, out.Availability)
		out.pods = availability.PodsOf(written)
	}
	out.Availability.Message = Shorten(out.Availability.Message)
	if it.Way.Whole {
		out.Drift = Differences{Fields: compare.Objects(e.comparable(it, written), written)}
	}
	if it.Way.Mirror {
		out.Mirrored = mirrored(written)
	}
	var undone *Contest
	if live == nil || live.GetResourceVersion() != written.GetResourceVersion() {
		undone = contestOf(live, written, e.managerOf(it))
	}
	t.memory.settle(it, written.GetResourceVersion(), out, undone, e.clock.Now())
	if it.Way.By == Replace {
		t.memory.setShape(it, written)
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

// postpone returns the outcome of an object whose next correction has to wait. It reads
// the object first, because it may be up to date already.
func (e *Engine) postpone(ctx context.Context, t task, it Item, live *unstructured.Unstructured, wait time.Duration) Outcome {
	if live == nil {
		return Outcome{Ref: it.Ref, Holds: true, Postponed: wait}
	}
	if differs, err := e.differs(ctx, t, it, live); err == nil && !differs {
		return e.applied(ctx, t, it, live, live)
	}
	out := seen(it, live, t.Record)
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

// overtaken reports whether the error means that the object changed since the attempt read it.
func overtaken(err error, live *unstructured.Unstructured) bool {
	if live == nil {
		return apierrors.IsAlreadyExists(err)
	}
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err) && !isFieldConflict(err)
}
