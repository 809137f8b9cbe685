// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// Work describes one work to apply.
type Work struct {
	// Name is the name of the work, unique within its family.
	Name string
	// Record is the owner reference of all objects of the work. If the record is lost, only kind and
	// name are needed.
	Record metav1.OwnerReference
	// Owner decides about the objects of the work.
	Owner Owner
	// Under identifies everything that results depend on besides manifest and object. If it
	// changes, the engine reads all objects again.
	Under string
	// As reads and writes objects with the rights of the work. If nil, the agent's rights apply.
	// Removal always uses the agent's rights; it never touches objects that are not in the ledger.
	As dynamic.Interface
	// Ledger is nil if the work is only compared, or its record is lost.
	Ledger Ledger
	// Reported are the objects that the work's status names. Every applied object is in the ledger
	// or in Reported.
	Reported []manifest.Ref
	// UnmarkedBefore is set if an earlier version of the agent, which did not mark taken-over
	// objects, applied the work. All objects created before this time count as taken over.
	UnmarkedBefore time.Time
	// DeletesTakenOver deletes objects that existed before the work applied them.
	DeletesTakenOver bool
	// Origin identifies what the work is part of. Works that replace each other share it. Each can
	// readmit objects that another one left on the member for their data.
	Origin string
	// RetainsData releases objects that hold data instead of deleting them: no user asked to remove
	// the data.
	RetainsData bool
	// Ending is the deletion timestamp of the work. Zero if it is not being deleted.
	Ending time.Time
	// RetainsRemoved is set if it is unknown whether objects were removed from the work on purpose. They stay
	// on the member and in the ledger until this work or another one wants them.
	RetainsRemoved bool
}

// Apply applies the items and removes objects of earlier ones.
func (e *Engine) Apply(ctx context.Context, w Work, items []Item) Result {
	before := known(w.Ledger.Entries(), w.Reported)
	err := w.Ledger.Write(ctx, intended(w.Ledger.Entries(), before, items))
	if apierrors.IsForbidden(err) {
		return RefuseAll(items, e.Unrecorded(err, kindOf(w.Record)))
	}
	if err != nil {
		return Result{Err: err}
	}
	results := e.applyItems(ctx, w, before, items)
	left := leftovers(before, items)
	unsure := false
	var askErr error
	if len(left) > 0 {
		unsure, askErr = w.Owner.IsMoving(ctx)
	}
	if unsure || askErr != nil {
		left = nil
	}
	var retained []Entry
	if w.RetainsRemoved {
		retained, left = left, nil
	}
	pruned, failure := e.clear(ctx, w, left, metav1.DeletePropagationBackground)
	if w.RetainsRemoved && failure == nil {
		pruned, failure = e.handOver(ctx, w, retained)
		retained = pruned.Left(retained)
	}
	pruned.keepRuns(ctx, left, w.Owner)
	ledger := recorded(w.Ledger.Entries(), before, items, results, pruned.gone)
	return Result{
		Manifests:     results,
		Denied:        pruned.against(),
		Retained:      pruned.retained,
		Waits:         pruned.waits,
		Unsure:        unsure,
		Unreleased:    retained,
		RetentionEnds: w.RetainsRemoved && len(retained) == 0 && !unsure && askErr == nil && failure == nil && areReadable(items),
		Err:           errors.Join(askErr, failure, w.Ledger.Write(ctx, ledger), failures(results)),
	}
}

// Compare reports how objects differ from the items. It writes neither objects nor the ledger.
func (e *Engine) Compare(ctx context.Context, w Work, items []Item) Result {
	results := e.applyItems(ctx, w, w.Ledger.Entries(), items)
	return Result{Manifests: results, Err: failures(results)}
}

// Remove removes all objects of a work. Foreground also waits for dependents; Orphan keeps the
// objects on the member without our owner reference.
func (e *Engine) Remove(ctx context.Context, w Work, policy metav1.DeletionPropagation) (*Removal, error) {
	var entries []Entry
	if w.Ledger != nil {
		entries = w.Ledger.Entries()
	}
	left := known(entries, w.Reported)
	e.watch.Follow(w.Name, followed(nil, left), nil)
	return e.clear(ctx, w, left, policy)
}

// clear removes objects that left a work, and releases those that the owner orphans.
func (e *Engine) clear(ctx context.Context, w Work, left []Entry, policy metav1.DeletionPropagation) (*Removal, error) {
	kept := slices.DeleteFunc(slices.Clone(left), func(entry Entry) bool { return !w.Owner.Orphans(entry) })
	left = slices.DeleteFunc(slices.Clone(left), w.Owner.Orphans)
	if len(kept) == 0 {
		return e.prune(ctx, w, left, policy)
	}
	released, failure := e.prune(ctx, w, kept, metav1.DeletePropagationOrphan)
	removal, err := e.prune(ctx, w, left, policy)
	removal.join(released)
	return removal, errors.Join(err, failure)
}

// Forget discards the cache of a work and stops watching its objects.
func (e *Engine) Forget(work string) {
	e.watch.Follow(work, nil, nil)
	e.caches.forget(work)
}

func kindOf(owner metav1.OwnerReference) schema.GroupKind {
	version, _ := schema.ParseGroupVersion(owner.APIVersion)
	return schema.GroupKind{Group: version.Group, Kind: owner.Kind}
}

// failures joins the errors of results.
func failures(results []ManifestResult) error {
	var errs []error
	for _, out := range results {
		if out.Err != nil {
			errs = append(errs, fmt.Errorf("applying %s: %w", out.Ref, out.Err))
		}
	}
	return errors.Join(errs...)
}
