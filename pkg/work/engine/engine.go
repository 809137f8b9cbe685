// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/work/engine/availability"
	"fleetgate.io/fleetgate/pkg/work/engine/memberwatch"
	"fleetgate.io/fleetgate/pkg/work/engine/merge"
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
	// rehearses makes all writes dry runs.
	rehearses bool
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
			out.Refused = refused
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
	text := "The object is being deleted on the member; it is re-created once the deletion is complete"
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
		return e.verified(ctx, t, it, live, live) // The member can drop fields in the rehearsal too.
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
	var objects dynamic.ResourceInterface = e.member.Resource(it.resource)
	if it.namespaced {
		objects = e.member.Resource(it.resource).Namespace(it.Ref.Namespace)
	}
	if e.rehearses {
		return rehearsal{objects}
	}
	return objects
}

// changedSince reports whether the error means that the object changed since the attempt read it.
func changedSince(err error, live *unstructured.Unstructured) bool {
	if live == nil {
		return apierrors.IsAlreadyExists(err)
	}
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err) && !isFieldConflict(err)
}

// decoded returns the item with its object. A cached plan has only the raw manifest, which was
// decoded before.
func (e *Engine) decoded(it Item) (Item, error) {
	if it.object != nil {
		return it, nil
	}
	var err error
	it.object, it.text, err = e.decode(it.raw)
	if err == nil {
		e.dropNamespace(&it)
	}
	return it, err
}
