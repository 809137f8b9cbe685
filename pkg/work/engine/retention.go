// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// The agent removes objects that left a work because a user took them out. If no user can have done
// so, because the hub was restored to an older state, the agent retains the objects. It changes
// only objects that another work wants: one write makes the other work their owner.

// RetainAll retains all objects of a work, except those that other works want, and returns the retained
// ones. It never deletes an object.
func (e *Engine) RetainAll(ctx context.Context, w Work) ([]Entry, error) {
	entries := w.Ledger.Entries()
	e.watch.Follow(w.Name, followed(nil, entries), nil)
	over, err := e.handOver(ctx, w, entries)
	retained := over.Left(entries)
	return retained, errors.Join(err, w.Ledger.Write(ctx, retained))
}

// RemoveExcept removes the objects of a work, except the retained ones and the containers that they
// are in, and deletes the entries of removed objects from the ledger. All other objects and entries
// stay.
func (e *Engine) RemoveExcept(ctx context.Context, w Work, retained []Entry, policy metav1.DeletionPropagation) (*Removal, error) {
	entries := w.Ledger.Entries()
	e.watch.Follow(w.Name, followed(nil, entries), nil)
	removing := slices.DeleteFunc(slices.Clone(entries), func(entry Entry) bool {
		return slices.ContainsFunc(retained, func(h Entry) bool { return h == entry || takes(entry, h) })
	})
	removal, err := e.clear(ctx, w, removing, policy)
	return removal, errors.Join(err, w.Ledger.Write(ctx, removal.Left(entries)))
}

// takes reports whether deleting an object deletes another: a namespace its contents, a definition
// the objects of its kind.
func takes(object, other Entry) bool {
	switch object.GroupKind() {
	case schema.GroupKind{Kind: "Namespace"}:
		return object.Name == other.Namespace
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return object.Name == other.GroupVersionResource().GroupResource().String()
	}
	return false
}

// handOver hands entries over to their next owners. Entries of objects that no longer exist count as
// gone; all others remain.
func (e *Engine) handOver(ctx context.Context, w Work, entries []Entry) (*Removal, error) {
	r := &Removal{gone: map[manifest.Key]bool{}}
	for _, entry := range entries {
		gone, err := e.handOverEntry(ctx, w, entry)
		if err != nil {
			r.errs = append(r.errs, fmt.Errorf("handing over %s: %w", manifest.KeyOf(entry.Ref), err))
		}
		if gone {
			r.gone[manifest.KeyOf(entry.Ref)] = true
		}
	}
	return r, errors.Join(r.errs...)
}

// handOverEntry makes the next owner of an entry, if there is one, the owner of the object in place of the
// work. It reports whether the object no longer belongs to the work, or no longer exists. It reads
// the object only if there is a next owner or the watch says that the object does not exist.
func (e *Engine) handOverEntry(ctx context.Context, w Work, entry Entry) (gone bool, err error) {
	next, err := w.Owner.NextOwner(ctx, entry)
	if err != nil {
		return false, err
	}
	if next == nil && !e.watch.Observed(objectOf(entry.GroupVersionResource(), entry.Ref)).Absent() {
		return false, nil
	}
	client, live, err := e.findEntry(ctx, entry)
	if err != nil {
		return false, err
	}
	if live == nil || !OwnershipOf(live.GetOwnerReferences(), w.Record).Ours {
		return true, nil
	}
	if next == nil {
		return false, nil
	}
	err = e.leave(ctx, client, live, w.Record, next, e.staleMark(w, live))
	return err == nil, err
}
