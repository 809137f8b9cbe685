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

// Reasons of refusals, in the order in which the engine finds them: in the manifest, on the member
// before the write, in the response to the write. Families map them to their own reasons and have
// more.
const (
	Undecodable      = "Undecodable"      // the manifest is not one object
	GeneratedName    = "GeneratedName"    // the manifest has generateName and no name
	Duplicated       = "Duplicated"       // another manifest of the work is for the same object
	Unserved         = "Unserved"         // the member does not serve the kind
	NotAcceptable    = "NotAcceptable"    // the member serves the kind in another scope
	NotRecorded      = "NotRecorded"      // the agent cannot write the ledger and therefore writes nothing
	Kept             = "Kept"             // no work can apply the object
	NotFound         = "NotFound"         // the agent cannot read the object
	NotTakenOver     = "NotTakenOver"     // the object existed before, and the work takes none over
	TakenByOthers    = "TakenByOthers"    // it existed before, and it differs too much to be taken over or its owners do not share it
	NotShared        = "NotShared"        // it is ours, and has other owners that do not share it
	Drifted          = "Drifted"          // it was changed on the member, and the work keeps drift
	DriftedSomewhere = "DriftedSomewhere" // as Drifted, but all fields were compared since the member does not accept the manifest
	DriftUnknown     = "DriftUnknown"     // the comparison for drift failed
	NotCompared      = "NotCompared"      // the comparison failed
	NotWritten       = "NotWritten"       // the member rejected the write, or would reject it
	FieldsNotApplied = "FieldsNotApplied" // the member accepted the write, and changed or dropped fields
)

// Outcome is the result for one manifest.
type Outcome struct {
	Ref manifest.Ref
	// Refused is nil if the manifest is applied, or compared.
	Refused *refusal.Refusal
	// Settled is set if a retry is useless until something changes.
	Settled bool
	// Availability is set if the manifest is applied.
	Availability availability.Finding
	// Drift is how the object of an applied manifest differs from it. Diff is the same for a
	// manifest that is only compared or not applied.
	Drift, Diff Differences
	// Generation and UID are those of the object on the member, if it exists.
	Generation int64
	UID        types.UID
	// Mirrored is the identity and status of the object, if the Way requests it.
	Mirrored *unstructured.Unstructured
	// Examined is the result of the Way's Examine, if the object exists.
	Examined any
	// Left are JSON pointers to fields that the manifest sets and the member decides.
	Left []string
	// Holds is set if the object has, or may have, our owner reference.
	Holds bool
	// Err is set if the result is unknown.
	Err error
	// Postponed is how long a correction has to wait, because another client reverts each one.
	Postponed time.Duration
	// Against is the contest over the object, if it is contested. QuietIn is how long the contest
	// lasts if nothing else happens.
	Against *Contest
	QuietIn time.Duration
	// AskIn is when to read the Pods of an unavailable workload to find the cause.
	AskIn time.Duration
	// run is the state to record in the ledger of an object that runs to completion.
	run Run
	// pods selects the Pods of a workload.
	pods availability.Pods
	// lacksNamespace is set if the object's namespace does not exist on the member.
	lacksNamespace bool
	// unserved is set if the member no longer serves the kind that the plan used.
	unserved bool
}

// isOpen reports whether a retry can change the refusal.
func (o Outcome) isOpen() bool { return o.Refused != nil && !o.Settled }

// Result is the result of applying a work.
type Result struct {
	// Outcomes are in the order of the items; nil if the engine did not get to them.
	Outcomes []Outcome
	// Denied lists removals that the agent has no right to, one sentence per object.
	Denied []string
	// Retained are the objects that left the work and stay on the member.
	Retained []Retained
	// Waits is set if a removal waits for something without an event.
	Waits bool
	// Unsure is set if the engine cannot decide yet which objects to remove.
	Unsure bool
	// Held are the objects that left the work and are retained, because the work is Held.
	Held []Entry
	// HoldEnds is set if the work is Held and no object is retained any more.
	HoldEnds bool
	// Err joins the errors of objects with an unknown result.
	Err error
}

// RefuseAll refuses all items that are not refused already. It changes no object.
func RefuseAll(items []Item, why *refusal.Refusal) Result {
	outcomes := make([]Outcome, len(items))
	for place, it := range items {
		outcomes[place] = Outcome{Ref: it.Ref, Refused: cmp.Or(it.Refused, why)}
	}
	return Result{Outcomes: outcomes}
}

// failures joins the errors of outcomes.
func failures(outcomes []Outcome) error {
	var errs []error
	for _, out := range outcomes {
		if out.Err != nil {
			errs = append(errs, fmt.Errorf("applying %s: %w", out.Ref, out.Err))
		}
	}
	return errors.Join(errs...)
}

// seen returns the outcome of an object that was read and not written.
func seen(it Item, live *unstructured.Unstructured, owner metav1.OwnerReference) Outcome {
	return Outcome{
		Ref:        it.Ref,
		Generation: live.GetGeneration(),
		UID:        live.GetUID(),
		Examined:   it.Way.examine(live),
		Holds:      OwnershipOf(live.GetOwnerReferences(), owner).Ours,
	}
}

// failed returns the outcome of an error: a refusal if the member answered, otherwise an error.
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

// Unrecorded returns the refusal of all manifests of a work whose record the agent cannot write.
// Without a record, the agent could not remove the objects again.
func (d *Dialect) Unrecorded(err error, kind schema.GroupKind) *refusal.Refusal {
	return &refusal.Refusal{Reason: NotRecorded, Message: d.Explain(err, kind)}
}
