// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// The ledger names every object on the member that has, or may have, the owner reference of a work.
// The engine enters an object before its first write, unless the work's status names it already: a
// manifest that is refused repeatedly must not cost two writes each time. It deletes the entry
// after the object is gone. If the agent is killed at any point, the next one finds what to remove.

// Entry is one object in a ledger.
type Entry struct {
	manifest.Ref
	// UID is that of the object, once it is known.
	UID types.UID
	// Run is the state of an object that runs to completion.
	Run Run
}

// Ledger is the storage of a family for the ledger of one work.
type Ledger interface {
	// Entries returns the ledger as last read or written.
	Entries() []Entry
	// Write replaces the ledger if it differs. If the member denies the write, the error is
	// Forbidden.
	Write(ctx context.Context, entries []Entry) error
}

// known returns all objects that may exist: the ledger, and objects that only the work's status
// names.
func known(ledger []Entry, reported []manifest.Ref) []Entry {
	result := slices.Clone(ledger)
	entered := byKey(ledger)
	for _, ref := range reported {
		key := manifest.KeyOf(ref)
		if _, is := entered[key]; is || ref.Resource == "" {
			continue
		}
		entered[key] = Entry{}
		result = append(result, Entry{Ref: ref})
	}
	return result
}

// intended returns the ledger to write before applying: with the items that are new.
func intended(ledger, known []Entry, items []Item) []Entry {
	result := slices.Clone(ledger)
	entered := byKey(known)
	for _, it := range items {
		if _, is := entered[it.key()]; is || it.Refused != nil || !it.Mode.owns() {
			continue
		}
		result = append(result, Entry{Ref: it.Ref})
	}
	return result
}

// recorded returns the ledger to write after applying: the items whose objects may be ours, and all
// other known objects that are not removed yet.
func recorded(ledger, known []Entry, items []Item, results []ManifestResult, gone map[manifest.Key]bool) []Entry {
	inLedger := byKey(ledger)
	var result []Entry
	entered := map[manifest.Key]bool{}
	for place, it := range items {
		if !it.isReadable() || entered[it.key()] {
			continue
		}
		before, was := inLedger[it.key()]
		entered[it.key()] = true
		switch out := results[place]; {
		case it.Refused != nil && was:
			result = append(result, before)
		case it.Refused != nil:
		case out.Owned && out.UID != "":
			result = append(result, Entry{Ref: it.Ref, UID: out.UID, Run: before.Run.then(out.run)})
		case out.Owned:
			result = append(result, Entry{Ref: it.Ref, UID: before.UID, Run: before.Run.then(out.run)})
		}
	}
	for key := range gone {
		entered[key] = true
	}
	return appendOthers(result, known, entered)
}

// leftovers returns the known objects that are no longer in the work. There are none while a
// manifest is unreadable: it could be for any of them.
func leftovers(known []Entry, items []Item) []Entry {
	if !areReadable(items) {
		return nil
	}
	wanted := map[manifest.Key]bool{}
	for _, it := range items {
		wanted[it.key()] = true
	}
	var left []Entry
	for _, e := range known {
		if !wanted[manifest.KeyOf(e.Ref)] {
			left = append(left, e)
		}
	}
	return left
}

// Beyond returns the ledger entries without an item. It returns none while an item is unreadable.
func Beyond(entries []Entry, items []Item) []Entry { return leftovers(entries, items) }

// Grows reports whether applying the items would add entries to the ledger.
func Grows(entries []Entry, items []Item) bool {
	return len(intended(entries, entries, items)) > len(entries)
}

func areReadable(items []Item) bool {
	return !slices.ContainsFunc(items, func(it Item) bool { return !it.isReadable() })
}

func byKey(list []Entry) map[manifest.Key]Entry {
	entries := make(map[manifest.Key]Entry, len(list))
	for _, e := range list {
		entries[manifest.KeyOf(e.Ref)] = e
	}
	return entries
}

func appendOthers(result, known []Entry, entered map[manifest.Key]bool) []Entry {
	for _, e := range known {
		if !entered[manifest.KeyOf(e.Ref)] {
			result = append(result, e)
		}
	}
	return result
}
