// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/work/engine/compare"
)

// Differences are the fields in which an object differs from its manifest.
type Differences struct {
	Fields []compare.Detail
	// Degraded is set when all fields were compared, although only those of the manifest were
	// requested, because the member does not accept the manifest.
	Degraded bool
}

// compare returns how the object differs from the manifest. Without Mode.Whole, that is what an
// apply would change, which only the member's API server knows exactly. live must be the latest
// version of the object.
func (e *Engine) compare(ctx context.Context, it Item, live *unstructured.Unstructured) (Differences, error) {
	if it.Mode.Whole {
		return Differences{Fields: compare.Objects(e.comparable(it, live), live)}, nil
	}
	return e.rehearse(ctx, it, live)
}

// rehearse runs a forced server-side apply as a dry run and returns what it would change.
func (e *Engine) rehearse(ctx context.Context, it Item, live *unstructured.Unstructured) (Differences, error) {
	dry, wanted := e.rehearsing(), it.object.DeepCopy()
	wanted.SetResourceVersion(live.GetResourceVersion())
	rehearsed, err := dry.at(it).Apply(ctx, it.Ref.Name, wanted, metav1.ApplyOptions{FieldManager: e.managerOf(it), Force: true})
	if apierrors.IsInvalid(err) {
		return Differences{Fields: compare.Objects(e.comparable(it, live), live), Degraded: true}, nil
	}
	if isDuplicate(err) {
		rehearsed, err = dry.patch(ctx, it, e.lastApplied(it, live), it.object, live)
	}
	if err != nil {
		return Differences{}, err
	}
	return Differences{Fields: compare.Objects(rehearsed, live)}, nil
}

// isDuplicate recognizes the error for a list with two items of one key, such as two environment
// variables of one name. API servers store such lists, but refuse to apply them.
func isDuplicate(err error) bool {
	return err != nil && !isTemporary(err) && strings.Contains(err.Error(), "duplicate entr")
}

// reportDiff reports how an object differs, and writes nothing. It returns false if the object
// changed meanwhile.
func (e *Engine) reportDiff(ctx context.Context, t task, it Item, live *unstructured.Unstructured) (ManifestResult, bool) {
	if live == nil {
		return ManifestResult{Ref: it.Ref, Final: true, Diff: Differences{Fields: compare.Missing()}}, true
	}
	found, err := e.compare(ctx, it, live)
	if err != nil {
		return e.failed(it, live, NotCompared, err), !changedSince(err, live)
	}
	out := resultOf(it, live, t.Record)
	out.Final, out.Diff = true, found
	t.cache.store(it, live.GetResourceVersion(), out, nil, e.clock.Now())
	return out, true
}

// refuseIfDiffers returns a refusal if the object differs and must not be overwritten: because drift is
// preserved, or because only an equal object is taken over. Otherwise the result is nil. It
// returns false if the object changed meanwhile.
func (e *Engine) refuseIfDiffers(ctx context.Context, t task, it Item, live *unstructured.Unstructured) (*ManifestResult, bool) {
	out := resultOf(it, live, t.Record)
	drifting := it.Mode.KeepDrifts && live.GetAnnotations()[e.HashAnnotation] == it.hash
	takingOver := it.Mode.TakeOverEqual && !out.Owned
	if !drifting && !takingOver {
		return nil, true
	}
	found, err := e.compare(ctx, it, live)
	if err != nil {
		reason := DriftUnknown
		if takingOver {
			reason = TakenByOthers
		}
		failure := e.failed(it, live, reason, err)
		failure.Owned = out.Owned
		return &failure, !changedSince(err, live)
	}
	if len(found.Fields) == 0 {
		return nil, true
	}
	out.Final = true
	if takingOver {
		out.Diff = found
		out.Refused = &refusal.Refusal{Reason: TakenByOthers, Message: fmt.Sprintf("The object was on the member before and differs%s (%s), %s",
			inDegradedMode(found), firstFields(found), e.Remedies.Differing)}
	} else {
		out.Drift = found
		out.Refused = &refusal.Refusal{Reason: driftReason(found), Message: fmt.Sprintf("The object was changed on the member%s (%s), %s",
			inDegradedMode(found), firstFields(found), e.Remedies.Drifted)}
	}
	t.cache.store(it, live.GetResourceVersion(), out, nil, e.clock.Now())
	return &out, true
}

func driftReason(found Differences) string {
	if found.Degraded {
		return DriftedSomewhere
	}
	return Drifted
}

func inDegradedMode(found Differences) string {
	if found.Degraded {
		return ", all fields compared since the member does not accept the manifest"
	}
	return ""
}

// firstFields names the first field and counts the others.
func firstFields(found Differences) string {
	first := found.Fields[0].Path
	if more := len(found.Fields) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", first, more)
	}
	return first
}
