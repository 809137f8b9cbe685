// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A work does not delete an object that existed before the work applied it. The first write marks
// the object with an annotation, in the same request that makes the work an owner. The mark is on
// the object, so that it survives a restart of the agent and passes to another work, placement or
// hub. Manifests cannot contain it. A ledger cannot store it: an object that passes to another work
// leaves the ledger.

// takenOverValue is the value of the TakenOverAnnotation.
const takenOverValue = "true"

// Values of annotations on an object: PolicyRecreate of the RecreateAnnotation, all others of the
// DeletePolicyAnnotation.
const (
	// PolicyRecreate deletes and re-creates the object to change an immutable field.
	PolicyRecreate = "Recreate"
	// PolicyDelete deletes the object with its work, even if it existed before or contains objects
	// of others.
	PolicyDelete = "Delete"
	// PolicyAbandon never deletes the object.
	PolicyAbandon = "Abandon"
)

// takesOver reports whether the next write of live has to set the mark: live has it already, or
// exists and belongs to no work yet. An object whose UID is in the ledger has only lost its owner
// reference.
func (e *Engine) takesOver(t task, live *unstructured.Unstructured) bool {
	if e.TakenOverAnnotation == "" {
		return false
	}
	if live.GetAnnotations()[e.TakenOverAnnotation] != "" {
		return true
	}
	if e.returns(t, live) {
		return false
	}
	s := OwnershipOf(live.GetOwnerReferences(), t.Record)
	return !s.Ours && len(s.Works) == 0 && !t.had(live.GetUID())
}

// isTakenOver reports whether an object of a work existed before it was applied.
func (e *Engine) isTakenOver(w Work, live *unstructured.Unstructured) bool {
	return e.TakenOverAnnotation != "" && live.GetAnnotations()[e.TakenOverAnnotation] != "" || e.isUnmarked(w, live)
}

// isUnmarked reports whether an object is older than the version of the agent that introduced the
// mark.
func (e *Engine) isUnmarked(w Work, live *unstructured.Unstructured) bool {
	return e.TakenOverAnnotation != "" && live.GetCreationTimestamp().Time.Before(w.UnmarkedBefore)
}

// staleMark returns the mark for an object that an earlier version of the agent may have taken
// over. The object gets it when it passes to another owner, which cannot know this.
func (e *Engine) staleMark(w Work, live *unstructured.Unstructured) map[string]any {
	if !e.isUnmarked(w, live) {
		return nil
	}
	return map[string]any{e.TakenOverAnnotation: takenOverValue}
}

// unmarked removes all annotations of the engine and sets why the object stays. An object that
// stays for its data also gets the origin of its work.
func (e *Engine) unmarked(w Work, why string) map[string]any {
	annotations := map[string]any{}
	for _, key := range []string{e.HashAnnotation, e.AppliedAnnotation, e.TakenOverAnnotation} {
		if key != "" {
			annotations[key] = nil
		}
	}
	if e.RetainedAnnotation != "" && why != "" {
		annotations[e.RetainedAnnotation] = Shorten(why)
		if e.RetainedFromAnnotation != "" && w.RetainsData && w.Origin != "" {
			annotations[e.RetainedFromAnnotation] = w.Origin
		}
	}
	return annotations
}

// stay is why an object is not deleted. The zero value means that it is deleted.
type stay struct {
	// why is a predicate of which the object is the subject.
	why string
	// held is set if the work remains an owner, and waits if that can change without an event.
	retained, waits bool
	// mark is the reason to write on the object.
	mark string
}

// stays decides whether an object without a next owner stays on the member when it leaves its work.
func (e *Engine) stays(ctx context.Context, p pruning, live *unstructured.Unstructured) (stay, error) {
	policy := ""
	if e.DeletePolicyAnnotation != "" {
		policy = live.GetAnnotations()[e.DeletePolicyAnnotation]
	}
	switch {
	case policy == PolicyDelete:
		return stay{}, nil
	case policy == PolicyAbandon:
		return stay{why: "stays on the member: its annotation " + e.DeletePolicyAnnotation + " is " + PolicyAbandon}, nil
	case e.isTakenOver(p.work, live) && !p.work.DeletesTakenOver:
		return stay{why: "stays on the member: it existed before it was placed"}, nil
	case p.work.RetainsData && holdsData(live.GroupVersionKind().GroupKind()):
		return stay{why: "stays on the member, as it may hold data and its placement no longer selects the member. " +
			"Delete it on the member, or select the member again", mark: "its placement no longer selects this member"}, nil
	case e.RetainedAnnotation == "" || !isContainer(live.GroupVersionKind().GroupKind()):
		return stay{}, nil
	}
	found, err := e.contentsOf(ctx, p, live)
	if err != nil {
		return stay{}, err
	}
	return e.keepContainer(p.work, found), nil
}

// keepContainer decides whether a container stays because of its contents. A work that continues to exist
// keeps the container until it is empty. A deleted work waits for objects that may be deleted soon,
// and then releases the container, so that its own deletion completes.
func (e *Engine) keepContainer(w Work, found contents) stay {
	if len(found.others)+len(found.going)+len(found.unknown) == 0 {
		return stay{}
	}
	elapsed := e.clock.Since(w.Ending)
	ends := !w.Ending.IsZero()
	awaited := len(found.going) > 0 || len(found.unknown) > 0
	switch {
	case len(found.others) == 0 && len(found.unknown) == 0 && ends && elapsed >= e.tuning.Removal && !w.RetainsData:
		return stay{} // all its objects belong to works that are being deleted
	case ends && len(found.others) == 0 && awaited && elapsed < e.tuning.Removal:
		return stay{why: "waits for " + found.text() + ", which it contains", retained: true, waits: true}
	case ends:
		return stay{why: "stays on the member: it contains " + found.text(), mark: "contains " + found.text()}
	}
	return stay{why: "stays on the member until it is empty: it contains " + found.text() +
		". To delete it with all that it contains, annotate it with " + e.DeletePolicyAnnotation + "=" + PolicyDelete, retained: true}
}
