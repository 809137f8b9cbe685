// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"

	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/work/engine/memberwatch"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// Work is what one work is brought for, and who may own it.
type Work struct {
	// Name is that of the work, within its family.
	Name string
	// Owner is the owner reference that every object of the work carries. Of a record that
	// is lost only the kind and the name are needed.
	Owner metav1.OwnerReference
	// May says why a manifest may not be written to an object that has these owners; nil if
	// it may.
	May func(Standing, *unstructured.Unstructured) *refusal.Refusal
	// Under is all that outcomes depend on besides manifest and object: under anything
	// else, all is looked at anew.
	Under string
	// As reads and writes objects with the rights that are the work's. Nil: with the
	// agent's. Taking away what the work does not ask for any more remains the agent's: it
	// never touches what it has not recorded.
	As dynamic.Interface
	// Ledger is that of the work; nil of a work that is only compared, or whose record is
	// lost.
	Ledger Ledger
	// Reported is what the work's status names: what was brought is in the ledger or here.
	Reported []manifest.Ref
	// HeirOf finds who else wants what is removed. Nil: nobody does.
	HeirOf HeirFinder
	// Claims finds out whether another work wants its object. Nil: it is not known.
	Claims ClaimFinder
	// UnmarkedBefore is set when objects that are older were applied by a version that did not
	// mark what it took over: all of them count as taken over.
	UnmarkedBefore time.Time
	// DeletesTakenOver deletes objects that existed before the work applied them.
	DeletesTakenOver bool
	// Origin is what the work is part of, the same for works that come in the place of each
	// other. An object that one of them left on the member to keep its data is theirs again.
	Origin string
	// RetainsData releases objects that hold data instead of deleting them: nobody has asked for
	// the removal of the data.
	RetainsData bool
	// Ending is when the deletion of the work was asked for. Zero: it is not being deleted.
	Ending time.Time
	// RanBefore is what is known of the run of an object that passes to this work from another.
	// Nil: none does.
	RanBefore func(context.Context, manifest.Key) (Run, error)
	// Keep reports whether an object stays on the member when it leaves the work, without
	// its name. Nil: none does.
	Keep func(Entry) bool
	// Unsure reports whether what has left the work may be about to join another. Nil: it
	// never is.
	Unsure func(context.Context) (bool, error)
	// Held is set when it is not known whether what has left the work was meant to: it stays
	// on the member as it is, in the ledger too, until it is wanted again or another work
	// wants it.
	Held bool
}

// Bring brings items to the member, and removes what is left of earlier ones.
func (e *Engine) Bring(ctx context.Context, w Work, items []Item) Result {
	before := known(w.Ledger.Entries(), w.Reported)
	err := w.Ledger.Write(ctx, intended(w.Ledger.Entries(), before, items))
	if apierrors.IsForbidden(err) {
		return RefuseAll(items, e.Unrecorded(err, kindOf(w.Owner)))
	}
	if err != nil {
		return Result{Err: err}
	}
	outcomes := e.look(ctx, w, before, items)
	left := leftovers(before, items)
	unsure := false
	var askErr error
	if len(left) > 0 && w.Unsure != nil {
		unsure, askErr = w.Unsure(ctx)
	}
	if unsure || askErr != nil {
		left = nil
	}
	var held []Entry
	if w.Held {
		held, left = left, nil
	}
	pruned, failure := e.clear(ctx, w, left, metav1.DeletePropagationBackground)
	if w.Held && failure == nil {
		pruned, failure = e.handOver(ctx, w, held)
		held = pruned.Left(held)
	}
	pruned.keepRuns(ctx, left, w.HeirOf)
	ledger := recorded(w.Ledger.Entries(), before, items, outcomes, pruned.gone)
	return Result{
		Outcomes: outcomes,
		Denied:   pruned.against(),
		Retained: pruned.retained,
		Waits:    pruned.waits,
		Unsure:   unsure,
		Held:     held,
		HoldEnds: w.Held && len(held) == 0 && !unsure && askErr == nil && failure == nil && areReadable(items),
		Err:      errors.Join(askErr, failure, w.Ledger.Write(ctx, ledger), failures(outcomes)),
	}
}

// Compare says how objects differ from items that are only to be compared. It changes
// nothing, nor the ledger.
func (e *Engine) Compare(ctx context.Context, w Work, items []Item) Result {
	outcomes := e.look(ctx, w, w.Ledger.Entries(), items)
	return Result{Outcomes: outcomes, Err: failures(outcomes)}
}

// look watches the objects of items and entries, and runs the items.
func (e *Engine) look(ctx context.Context, w Work, entries []Entry, items []Item) []Outcome {
	lacking := &e.memories.of(w.Name).lacking
	follow := func() {
		e.watch.Follow(w.Name, append(followed(items, entries), lacking.namespaces()...), groupsOf(items))
	}
	follow()
	memory := &e.memories.of(w.Name).objects
	memory.begin(items, w.Under, e.clock.Now(), e.effort.Resync)
	with := *e
	if w.As != nil {
		with.member = w.As
	}
	outcomes := with.run(ctx, task{
		owner:  w.Owner,
		origin: w.Origin,
		may:    w.May,
		memory: memory,
		had: func(uid types.UID) bool {
			return slices.ContainsFunc(entries, func(entry Entry) bool { return entry.UID == uid })
		},
		saw:  func(it Item) memberwatch.Sighting { return e.watch.Saw(it.target()) },
		runs: runsIn(entries, items),

		ranBefore: w.RanBefore,
	}, items)
	if lacking.note(outcomes) {
		follow()
	}
	if slices.ContainsFunc(outcomes, func(out Outcome) bool { return out.unserved }) {
		e.kinds.renew()
		e.ForgetPlan(w.Name)
	}
	return outcomes
}

// Remove removes all that a work has brought: Foreground with what depends on it; with
// Orphan it stays on the member, and loses our name.
func (e *Engine) Remove(ctx context.Context, w Work, policy metav1.DeletionPropagation) (*Removal, error) {
	var entries []Entry
	if w.Ledger != nil {
		entries = w.Ledger.Entries()
	}
	left := known(entries, w.Reported)
	e.watch.Follow(w.Name, followed(nil, left), nil)
	return e.clear(ctx, w, left, policy)
}

// clear prunes what has left a work, but for what is to stay, which it lets go of.
func (e *Engine) clear(ctx context.Context, w Work, left []Entry, policy metav1.DeletionPropagation) (*Removal, error) {
	var kept []Entry
	if w.Keep != nil {
		kept = slices.DeleteFunc(slices.Clone(left), func(entry Entry) bool { return !w.Keep(entry) })
		left = slices.DeleteFunc(slices.Clone(left), w.Keep)
	}
	if len(kept) == 0 {
		return e.prune(ctx, w, left, policy)
	}
	released, failure := e.prune(ctx, w, kept, metav1.DeletePropagationOrphan)
	removal, err := e.prune(ctx, w, left, policy)
	removal.join(released)
	return removal, errors.Join(err, failure)
}

// Forget lets go of what is remembered of a work, and of the watch on its objects.
func (e *Engine) Forget(work string) {
	e.watch.Follow(work, nil, nil)
	e.memories.forget(work)
}

func kindOf(owner metav1.OwnerReference) schema.GroupKind {
	version, _ := schema.ParseGroupVersion(owner.APIVersion)
	return schema.GroupKind{Group: version.Group, Kind: owner.Kind}
}

// followed lists the objects whose changes matter to a work: what it brings
// and what it has still to remove.
func followed(items []Item, entries []Entry) []memberwatch.Object {
	seen := sets.Set[memberwatch.Object]{}
	var objects []memberwatch.Object
	add := func(resource schema.GroupVersionResource, ref manifest.Ref) {
		object := objectOf(resource, ref)
		if resource.Resource != "" && !seen.Has(object) {
			seen.Insert(object)
			objects = append(objects, object)
		}
	}
	for _, it := range items {
		add(it.resource, it.Ref)
	}
	for _, entry := range entries {
		add(entry.GroupVersionResource(), entry.Ref)
	}
	return objects
}
