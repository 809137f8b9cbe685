// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// The ledger is AppliedWork.status.appliedResources: every object on the member
// that carries, or may carry, the Work's ownership. Before an object is written
// for the first time it is entered there, unless the Work's own status already
// names it: a manifest that is refused again and again is named there and shall
// not cost two writes each time. An object is struck after it is gone. So
// wherever the agent is killed, the next one finds what to remove.

type entry = placementv1beta1.AppliedResourceMeta

// known is all that may have been written so far: the ledger, and what the
// Work's status names beyond it.
func known(ledger []entry, reported []placementv1beta1.ManifestCondition) []entry {
	result := slices.Clone(ledger)
	entered := byKey(ledger)
	for _, m := range reported {
		key := manifest.KeyOf(m.Identifier)
		if _, is := entered[key]; is || m.Identifier.Resource == "" {
			continue
		}
		entered[key] = entry{}
		result = append(result, entry{WorkResourceIdentifier: m.Identifier})
	}
	return result
}

// intended is the ledger to write before items are applied: with what is about
// to be written and was not known before.
func intended(ledger, known []entry, items []item) []entry {
	result := slices.Clone(ledger)
	entered := byKey(known)
	for _, it := range items {
		if _, is := entered[it.key()]; is || it.refused != nil {
			continue
		}
		result = append(result, entry{WorkResourceIdentifier: it.id})
	}
	return result
}

// recorded is the ledger to write afterwards: of the items, those whose object
// may be ours; of all else that was known, what has not been removed yet.
func recorded(ledger, known []entry, items []item, outcomes []outcome, gone map[manifest.Key]bool) []entry {
	inLedger := byKey(ledger)
	var result []entry
	entered := map[manifest.Key]bool{}
	for place, it := range items {
		if !it.isReadable() || entered[it.key()] {
			continue
		}
		before, was := inLedger[it.key()]
		entered[it.key()] = true
		switch out := outcomes[place]; {
		case it.refused != nil && was:
			result = append(result, before)
		case it.refused != nil:
		case out.holds && out.uid != "":
			result = append(result, entry{WorkResourceIdentifier: it.id, UID: out.uid})
		case out.holds:
			result = append(result, entry{WorkResourceIdentifier: it.id, UID: before.UID})
		}
	}
	for key := range gone {
		entered[key] = true
	}
	return appendOthers(result, known, entered)
}

// leftovers are the objects that were applied and are no longer in the Work. As
// long as one manifest cannot be read there are none: it could be any of them.
func leftovers(known []entry, items []item) []entry {
	wanted := map[manifest.Key]bool{}
	for _, it := range items {
		if !it.isReadable() {
			return nil
		}
		wanted[it.key()] = true
	}
	var left []entry
	for _, e := range known {
		if !wanted[manifest.KeyOf(e.WorkResourceIdentifier)] {
			left = append(left, e)
		}
	}
	return left
}

func byKey(list []entry) map[manifest.Key]entry {
	entries := make(map[manifest.Key]entry, len(list))
	for _, e := range list {
		entries[manifest.KeyOf(e.WorkResourceIdentifier)] = e
	}
	return entries
}

func appendOthers(result, known []entry, entered map[manifest.Key]bool) []entry {
	for _, e := range known {
		if !entered[manifest.KeyOf(e.WorkResourceIdentifier)] {
			result = append(result, e)
		}
	}
	return result
}
