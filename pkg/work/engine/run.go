// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"fleetgate.io/fleetgate/pkg/work/engine/availability"
)

// Objects that run to completion, such as Jobs, are often deleted afterwards, by the cluster or by
// hand. Re-creating one would run it again without a request. The ledger therefore records what
// each object ran and how it ended, which distinguishes a deleted object from one that never
// existed. To run it again, a user changes its spec.

// Run is the state of an object that runs to completion. The zero value means unknown.
type Run struct {
	// ManifestHash is the hash of the spec that ran.
	ManifestHash string
	// Result is an [availability.Result]; empty if no end was seen.
	Result string
	// Reason is why it ended.
	Reason string
}

// then returns the run after a reconcile. A completed run stays completed: an object that somebody
// re-created is no second run.
func (r Run) then(now Run) Run {
	if now.ManifestHash == "" || r.ManifestHash == now.ManifestHash && r.Result != "" && now.Result == "" {
		return r
	}
	return now
}

// runOf returns the state of an item's run as the object shows it.
func (i Item) runOf(object *unstructured.Unstructured) Run {
	if i.run == "" {
		return Run{}
	}
	ended := availability.CompletionOf(object)
	return Run{ManifestHash: i.run, Result: string(ended.Result), Reason: ended.Reason}
}

// ran returns the result of a manifest that ran to completion and whose object is gone. An
// expiring object that existed counts as completed although nobody saw it end, for example because
// no agent ran: running it twice does more harm than asking a user. The same holds for an object
// applied by an agent that did not record runs.
func (t task) ran(ctx context.Context, it Item) (ManifestResult, bool) {
	if it.run == "" {
		return ManifestResult{}, false
	}
	known := t.runs[it.key()]
	if known.UID == "" && known.Run == (Run{}) {
		var err error
		if known.Run, err = t.Owner.PreviousRun(ctx, it.key()); err != nil {
			return ManifestResult{Ref: it.Ref, Owned: true, Err: err}, true
		}
	}
	isThis := known.Run.ManifestHash == it.run
	if last := t.lastState(known.UID); last != nil && isThis && known.Run.Result == "" {
		known.Run = it.runOf(last)
	}
	out := ManifestResult{Ref: it.Ref, Owned: true, run: known.Run}
	switch {
	case isThis && known.Run.Result != "":
		out.Availability = availability.Completion{Result: availability.Result(known.Run.Result), Reason: known.Run.Reason}.Gone(it.Ref.Kind)
	case known.UID != "" && it.expires && (isThis || known.Run.ManifestHash == ""):
		out.Availability, out.run = availability.GoneUnseen(it.Ref.Kind), Run{ManifestHash: it.run}
	default:
		return ManifestResult{}, false
	}
	return out, true
}

// endedAndGoes reports whether an object of ours is being deleted after it completed its run.
// Nothing has to be done for it.
func (t task) endedAndGoes(ctx context.Context, it Item, live *unstructured.Unstructured) bool {
	if it.run == "" || live.GetDeletionTimestamp() == nil || !availability.CompletionOf(live).Ended() {
		return false
	}
	owners, known := OwnershipOf(live.GetOwnerReferences(), t.Record), t.runs[it.key()]
	ranThis := known.UID == live.GetUID() && (known.Run.ManifestHash == it.run || known.Run.ManifestHash == "")
	return ranThis && owners.Ours && t.Owner.MayWrite(ctx, owners, it.object) == nil
}
