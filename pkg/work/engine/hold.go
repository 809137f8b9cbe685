// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// What has left a work is removed because somebody took it out. If nobody can have, since the
// order itself is an older one or is gone without a word, the objects are held: nothing is
// asked of the member but what another work wants, which becomes its own in one write.

// Hold leaves on the member all that a work has brought, but for what other works want, and
// returns what it holds. It deletes nothing, whatever happens.
func (e *Engine) Hold(ctx context.Context, w Work) ([]Entry, error) {
	entries := w.Ledger.Entries()
	e.watch.Follow(w.Name, followed(nil, entries), nil)
	over, err := e.handOver(ctx, w, entries)
	held := over.Left(entries)
	return held, errors.Join(err, w.Ledger.Write(ctx, held))
}

// RemoveBut removes what a work has brought, but for what is held and what that is in, and
// strikes from the ledger what is gone. The rest stays as it is, in the ledger too.
func (e *Engine) RemoveBut(ctx context.Context, w Work, held []Entry, policy metav1.DeletionPropagation) (*Removal, error) {
	entries := w.Ledger.Entries()
	e.watch.Follow(w.Name, followed(nil, entries), nil)
	doomed := slices.DeleteFunc(slices.Clone(entries), func(entry Entry) bool {
		return slices.ContainsFunc(held, func(h Entry) bool { return h == entry || takes(entry, h) })
	})
	removal, err := e.clear(ctx, w, doomed, policy)
	return removal, errors.Join(err, w.Ledger.Write(ctx, removal.Left(entries)))
}

// takes reports whether an object takes another with it when it is removed: a namespace what
// is in it, a definition what is of its kind.
func takes(object, other Entry) bool {
	switch object.GroupKind() {
	case schema.GroupKind{Kind: "Namespace"}:
		return object.Name == other.Namespace
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return object.Name == other.GroupVersionResource().GroupResource().String()
	}
	return false
}

// handOver gives entries to their heirs. What is not on the member any more is gone too; the
// rest remains.
func (e *Engine) handOver(ctx context.Context, w Work, entries []Entry) (*Removal, error) {
	r := &Removal{gone: map[manifest.Key]bool{}}
	for _, entry := range entries {
		gone, err := e.bequeath(ctx, w, entry)
		if err != nil {
			r.errs = append(r.errs, fmt.Errorf("handing over %s: %w", manifest.KeyOf(entry.Ref), err))
		}
		if gone {
			r.gone[manifest.KeyOf(entry.Ref)] = true
		}
	}
	return r, errors.Join(r.errs...)
}

// bequeath makes the heir of an entry, if it has one, the owner of its object instead of us,
// and reports whether the object is free of us or gone. The member is asked only about an
// object that has an heir, or that by the watch is not there.
func (e *Engine) bequeath(ctx context.Context, w Work, entry Entry) (gone bool, err error) {
	heir, err := w.HeirOf.find(ctx, entry)
	if err != nil {
		return false, err
	}
	if heir == nil && !e.watch.Saw(objectOf(entry.GroupVersionResource(), entry.Ref)).Absent() {
		return false, nil
	}
	client := e.entryClient(entry)
	live, err := client.Get(ctx, entry.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if !StandingOf(live.GetOwnerReferences(), w.Owner).Ours {
		return true, nil
	}
	if heir == nil {
		return false, nil
	}
	err = e.leave(ctx, client, live, w.Owner, heir, e.staleMark(w, live))
	return err == nil, err
}
