// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// The ledger names every object on the member that carries, or may carry, a work's
// ownership. Before an object is written for the first time it is entered there, unless
// the work's own status already names it: a manifest that is refused again and again is
// named there and shall not cost two writes each time. An object is struck after it is
// gone. So wherever the agent is killed, the next one finds what to remove.

// Entry is one object in a ledger.
type Entry struct {
	manifest.Ref
	// UID is that of the object, as soon as it is known.
	UID types.UID
	// Run is what is known of an object that runs to completion.
	Run Run
}

// Ledger is where a family keeps it.
type Ledger interface {
	// Entries is the ledger as it was read or written last.
	Entries() []Entry
	// Write replaces it, if it differs. An error of a member that forbids it is Forbidden.
	Write(ctx context.Context, entries []Entry) error
}

// known is all that may have been written so far: the ledger, and what the
// work's status names beyond it.
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

// intended is the ledger to write before items are applied: with what is about
// to be written and was not known before.
func intended(ledger, known []Entry, items []Item) []Entry {
	result := slices.Clone(ledger)
	entered := byKey(known)
	for _, it := range items {
		if _, is := entered[it.key()]; is || it.Refused != nil || !it.Way.owns() {
			continue
		}
		result = append(result, Entry{Ref: it.Ref})
	}
	return result
}

// recorded is the ledger to write afterwards: of the items, those whose object
// may be ours; of all else that was known, what has not been removed yet.
func recorded(ledger, known []Entry, items []Item, outcomes []Outcome, gone map[manifest.Key]bool) []Entry {
	inLedger := byKey(ledger)
	var result []Entry
	entered := map[manifest.Key]bool{}
	for place, it := range items {
		if !it.isReadable() || entered[it.key()] {
			continue
		}
		before, was := inLedger[it.key()]
		entered[it.key()] = true
		switch out := outcomes[place]; {
		case it.Refused != nil && was:
			result = append(result, before)
		case it.Refused != nil:
		case out.Holds && out.UID != "":
			result = append(result, Entry{Ref: it.Ref, UID: out.UID, Run: before.Run.then(out.run)})
		case out.Holds:
			result = append(result, Entry{Ref: it.Ref, UID: before.UID, Run: before.Run.then(out.run)})
		}
	}
	for key := range gone {
		entered[key] = true
	}
	return appendOthers(result, known, entered)
}

// leftovers are the objects that were applied and are no longer in the Work. As
// long as one manifest cannot be read there are none: it could be any of them.
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

// Beyond are the entries of a ledger that none of the items is for; none while one of the items
// cannot be read.
func Beyond(entries []Entry, items []Item) []Entry { return leftovers(entries, items) }

// Grows reports whether items are to be brought that are not in a ledger.
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
