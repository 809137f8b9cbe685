// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/work/engine/availability"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// Reasons of refusals, for which a manifest is not brought, or not compared, as they are
// found: in the manifest, on the member before a write, by the write. Families report them by
// reasons of their own, and have more.
const (
	Undecodable      = "Undecodable"      // it is not one object
	GeneratedName    = "GeneratedName"    // it has no name of its own
	Duplicated       = "Duplicated"       // another manifest of the work is for the same object
	Unserved         = "Unserved"         // the member has no such kind
	NotAcceptable    = "NotAcceptable"    // the member has the kind in another scope
	NotRecorded      = "NotRecorded"      // the ledger cannot be written, without which nothing is
	Kept             = "Kept"             // no work may bring the object
	NotFound         = "NotFound"         // the member did not let us see whether the object is there
	NotTakenOver     = "NotTakenOver"     // the object was there before, and none is to be taken over
	TakenByOthers    = "TakenByOthers"    // it was there before, and is not as it has to be to be taken over, or its owners do not share it
	NotShared        = "NotShared"        // it is ours, and has other owners who do not share it
	Drifted          = "Drifted"          // it was changed on the member, and that is not overwritten
	DriftedSomewhere = "DriftedSomewhere" // the same, found by comparing all fields since the member does not accept the manifest
	DriftUnknown     = "DriftUnknown"     // the member did not answer whether it was changed
	NotCompared      = "NotCompared"      // the member did not answer how it differs
	NotWritten       = "NotWritten"       // the member refused the write, or would
	FieldsNotApplied = "FieldsNotApplied" // the member accepted the write, and changed or dropped fields
)

// Outcome is what became of one manifest.
type Outcome struct {
	Ref manifest.Ref
	// Refused is nil when the manifest is brought, or compared.
	Refused *refusal.Refusal
	// Settled is set when another look brings nothing as long as nothing changes.
	Settled bool
	// Availability is set when the manifest is brought.
	Availability availability.Finding
	// Drift is how the object of a manifest differs from it that is brought, Diff how one
	// differs that is not.
	Drift, Diff Differences
	// Generation and UID are those of the object on the member, if there is one.
	Generation int64
	UID        types.UID
	// Mirrored is the object with its status and little else, if that was asked for.
	Mirrored *unstructured.Unstructured
	// Examined is what the way's Examine made of the object, if there is one.
	Examined any
	// Left are JSON pointers of fields that the manifest sets and the member decides.
	Left []string
	// Holds is set when the object carries, or may carry, our ownership.
	Holds bool
	// Err is set when it could not be found out what to do, or whether it worked.
	Err error
	// Postponed is how long a repair has to wait, because others undo each.
	Postponed time.Duration
	// Against is whom repairs are against, while that is contested, and QuietIn how long
	// it still is if nothing else happens.
	Against *Contest
	QuietIn time.Duration
	// AskIn is how long until the Pods of a workload that is not available are worth
	// asking why.
	AskIn time.Duration
	// run is what the ledger is to know of an object that runs to completion.
	run Run
	// pods selects those of a workload.
	pods availability.Pods
	// lacksNamespace is set when the object's namespace is not on the member.
	lacksNamespace bool
	// unserved is set when the plan was made with a kind that the member has no longer.
	unserved bool
}

// isOpen reports whether a refusal may be another one when the same is tried again.
func (o Outcome) isOpen() bool { return o.Refused != nil && !o.Settled }

// Result is what came of bringing a work.
type Result struct {
	// Outcomes are those of the items, in their order; nil if it did not come to bringing.
	Outcomes []Outcome
	// Denied says what the agent may not remove, a sentence for each object.
	Denied []string
	// Retained are the objects that have left the work and stay on the member.
	Retained []Retained
	// Waits is set when a removal waits for something that no event tells of.
	Waits bool
	// Unsure is set when it is not clear yet what may be removed.
	Unsure bool
	// Held is what has left the work and stays on the member all the same, since the work is
	// Held.
	Held []Entry
	// HoldEnds is set when the work is Held, and nothing is left to hold.
	HoldEnds bool
	// Err is what could not be found out.
	Err error
}

// RefuseAll refuses the items that are not refused already. None is touched.
func RefuseAll(items []Item, why *refusal.Refusal) Result {
	outcomes := make([]Outcome, len(items))
	for place, it := range items {
		outcomes[place] = Outcome{Ref: it.Ref, Refused: cmp.Or(it.Refused, why)}
	}
	return Result{Outcomes: outcomes}
}

// failures is the error of what could not be found out.
func failures(outcomes []Outcome) error {
	var errs []error
	for _, out := range outcomes {
		if out.Err != nil {
			errs = append(errs, fmt.Errorf("applying %s: %w", out.Ref, out.Err))
		}
	}
	return errors.Join(errs...)
}

// seen is the outcome of an object that was looked at and not written.
func seen(it Item, live *unstructured.Unstructured, owner metav1.OwnerReference) Outcome {
	return Outcome{
		Ref:        it.Ref,
		Generation: live.GetGeneration(),
		UID:        live.GetUID(),
		Examined:   it.Way.examine(live),
		Holds:      StandingOf(live.GetOwnerReferences(), owner).Ours,
	}
}

// failed is the outcome of an error, which may be an answer or the lack of one.
func (e *Engine) failed(it Item, live *unstructured.Unstructured, reason string, err error) Outcome {
	out := Outcome{Ref: it.Ref, Holds: true, Err: err}
	if live != nil {
		out.Generation, out.UID, out.Examined = live.GetGeneration(), live.GetUID(), it.Way.examine(live)
	}
	if isTemporary(err) {
		return out
	}
	out.Err = nil
	out.lacksNamespace = live == nil && isWithoutNamespace(err)
	out.Refused = &refusal.Refusal{Reason: reason, Message: e.Explain(err, it.Ref.GroupKind())}
	return out
}

// Unrecorded is the refusal of all manifests of a work that the agent may not keep a
// record of, which is an object of this kind: without one nothing would be removed again.
func (d *Dialect) Unrecorded(err error, kind schema.GroupKind) *refusal.Refusal {
	return &refusal.Refusal{Reason: NotRecorded, Message: d.Explain(err, kind)}
}
