// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/work/engine/availability"
	"fleetgate.io/fleetgate/pkg/work/engine/compare"
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

// ManifestResult is the result for one manifest.
type ManifestResult struct {
	Ref manifest.Ref
	// Refused is nil if the manifest is applied, or compared.
	Refused *refusal.Refusal
	// Final is set if a retry is useless until something changes.
	Final bool
	// Availability is set if the manifest is applied.
	Availability availability.Finding
	// Drift is how the object of an applied manifest differs from it. Diff is the same for a
	// manifest that is only compared or not applied.
	Drift, Diff Differences
	// Generation and UID are those of the object on the member, if it exists.
	Generation int64
	UID        types.UID
	// Mirrored is the identity and status of the object, if the Mode requests it.
	Mirrored *unstructured.Unstructured
	// Examined is the result of the Mode's Examine, if the object exists.
	Examined any
	// Left are JSON pointers to fields that the manifest sets and the member decides.
	Left []string
	// Owned is set if the object has, or may have, our owner reference.
	Owned bool
	// Err is set if the result is unknown.
	Err error
	// Postponed is how long a correction has to wait, because another client reverts each one.
	Postponed time.Duration
	// Contest is the contest over the object, if it is contested. QuietIn is how long the contest
	// lasts if nothing else happens.
	Contest       *Contest
	ContestEndsIn time.Duration
	// ReadPodsIn is when to read the Pods of an unavailable workload to find the cause.
	ReadPodsIn time.Duration
	// run is the state to record in the ledger of an object that runs to completion.
	run Run
	// pods selects the Pods of a workload.
	pods availability.Pods
	// namespaceMissing is set if the object's namespace does not exist on the member.
	namespaceMissing bool
	// unserved is set if the member no longer serves the kind that the plan used.
	unserved bool
	// futile is set if the write changed nothing but the object's version.
	futile bool
}

// isRetriable reports whether a retry can change the refusal.
func (o ManifestResult) isRetriable() bool { return o.Refused != nil && !o.Final }

// Result is the result of applying a work.
type Result struct {
	// Manifests are in the order of the items; nil if the engine did not get to them.
	Manifests []ManifestResult
	// Denied lists removals that the agent has no right to, one sentence per object.
	Denied []string
	// Retained are the objects that left the work and stay on the member.
	Retained []Retained
	// Waits is set if a removal waits for something without an event.
	Waits bool
	// Unsure is set if the engine cannot decide yet which objects to remove.
	Unsure bool
	// Unreleased are the objects that left the work and are retained, because the work RetainsRemoved.
	Unreleased []Entry
	// RetentionEnds is set if the work RetainsRemoved and no object is retained any more.
	RetentionEnds bool
	// Err joins the errors of objects with an unknown result.
	Err error
}

// RefuseAll refuses all items that are not refused already. It changes no object.
func RefuseAll(items []Item, why *refusal.Refusal) Result {
	results := make([]ManifestResult, len(items))
	for place, it := range items {
		results[place] = ManifestResult{Ref: it.Ref, Refused: cmp.Or(it.Refused, why)}
	}
	return Result{Manifests: results}
}

// resultOf returns the result of an object that was read and not written.
func resultOf(it Item, live *unstructured.Unstructured, owner metav1.OwnerReference) ManifestResult {
	return ManifestResult{
		Ref:        it.Ref,
		Generation: live.GetGeneration(),
		UID:        live.GetUID(),
		Examined:   it.Mode.examine(live),
		Owned:      OwnershipOf(live.GetOwnerReferences(), owner).Ours,
	}
}

// failed returns the result of an error: a refusal if the member answered, otherwise an error.
func (e *Engine) failed(it Item, live *unstructured.Unstructured, reason string, err error) ManifestResult {
	out := ManifestResult{Ref: it.Ref, Owned: true, Err: err}
	if live != nil {
		out.Generation, out.UID, out.Examined = live.GetGeneration(), live.GetUID(), it.Mode.examine(live)
	}
	if isTemporary(err) {
		return out
	}
	out.Err = nil
	out.namespaceMissing = live == nil && isWithoutNamespace(err)
	out.Refused = &refusal.Refusal{Reason: reason, Message: e.explain(err, it)}
	return out
}

// Unrecorded returns the refusal of all manifests of a work whose record the agent cannot write.
// Without a record, the agent could not remove the objects again.
func (d *Dialect) Unrecorded(err error, kind schema.GroupKind) *refusal.Refusal {
	return &refusal.Refusal{Reason: NotRecorded, Message: d.Explain(err, kind)}
}

// verified returns the result of a successful write, after comparing the response with the
// manifest.
func (e *Engine) verified(ctx context.Context, t task, it Item, live, written *unstructured.Unstructured) ManifestResult {
	if live == written && it.Mode.Leave.isApplied(live) {
		return e.applied(ctx, t, it, live, written) // others decide the remaining fields
	}
	if live == nil {
		it = e.adoptMemberFields(it, written) // A webhook of the member may have decided such a field at creation.
	}
	return e.resultFor(ctx, t, it, live, written, e.verify(it, written))
}

// applied returns the result of a successful write, or of an object that needed none.
func (e *Engine) applied(ctx context.Context, t task, it Item, live, written *unstructured.Unstructured) ManifestResult {
	return e.resultFor(ctx, t, it, live, written, nil)
}

// resultFor returns the result for an object that was written or read. refused is nil if the object
// has all fields of the manifest.
func (e *Engine) resultFor(ctx context.Context, t task, it Item, live, written *unstructured.Unstructured, refused *refusal.Refusal) ManifestResult {
	out := resultOf(it, written, t.Record)
	out.Refused, out.Left = refused, it.leaves
	out.Owned, out.Availability = out.Owned || it.Mode.owns(), e.health.Of(written, it.object, e.HealthAnnotations)
	if out.run = it.runOf(written); out.run.ManifestHash != "" && out.run.Result == "" && it.expires {
		e.watch.FollowEnd(it.target(), written)
	}
	if out.Availability.State == availability.NotYet {
		out.Availability = e.withClass(ctx, it, written, out.Availability)
		out.pods = availability.PodsOf(written)
	}
	out.Availability.Message = Shorten(out.Availability.Message)
	if it.Mode.Whole {
		out.Drift = Differences{Fields: compare.Objects(e.comparable(it, written), written)}
	}
	if it.Mode.Mirror {
		out.Mirrored = mirrored(written)
	}
	var undone *Contest
	changed := live == nil || live.GetResourceVersion() != written.GetResourceVersion()
	out.futile = changed && live != nil && hasSameContent(live, written)
	if changed && !out.futile {
		undone = contestOf(live, written, e.managerOf(it))
	}
	t.cache.store(it, written.GetResourceVersion(), out, undone, e.clock.Now())
	if it.Mode.Method == Replace {
		t.cache.setShape(it, written)
	}
	return out
}

// isWithoutNamespace reports whether the member rejected an object because its namespace does not
// exist, or is being deleted and can be created again.
func isWithoutNamespace(err error) bool {
	var response apierrors.APIStatus
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return true
	}
	if !apierrors.IsNotFound(err) || !errors.As(err, &response) {
		return false
	}
	details := response.Status().Details
	return details != nil && details.Group == "" && details.Kind == "namespaces"
}
