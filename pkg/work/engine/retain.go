// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// An object that existed before a work applied it is not the work's to delete. The first write
// of the work marks it, in the same request that makes the work its owner: the mark is where the
// object is, so it survives a restart of the agent, and passes with the object to another work,
// another placement and another hub. Manifests cannot bring the mark. A ledger could not hold
// it: an object that passes to another work leaves the ledger.

// takenOverValue is that of the TakenOverAnnotation.
const takenOverValue = "true"

// Values of the DeletePolicyAnnotation on an object.
const (
	// PolicyDelete deletes the object with its work, even if it existed before or contains
	// objects of others.
	PolicyDelete = "Delete"
	// PolicyAbandon never deletes it.
	PolicyAbandon = "Abandon"
)

// takesOver reports whether the next write of live has to mark it as taken over: it carries the
// mark already, or exists and belongs to no work yet. An object that the ledger names by its UID
// has only lost its owner.
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
	s := StandingOf(live.GetOwnerReferences(), t.owner)
	return !s.Ours && len(s.Works) == 0 && (t.had == nil || !t.had(live.GetUID()))
}

// isTakenOver reports whether an object of a work existed before it was applied.
func (e *Engine) isTakenOver(w Work, live *unstructured.Unstructured) bool {
	return e.TakenOverAnnotation != "" && live.GetAnnotations()[e.TakenOverAnnotation] != "" || e.isUnmarked(w, live)
}

// isUnmarked reports whether an object is older than what marks objects of the work.
func (e *Engine) isUnmarked(w Work, live *unstructured.Unstructured) bool {
	return e.TakenOverAnnotation != "" && live.GetCreationTimestamp().Time.Before(w.UnmarkedBefore)
}

// staleMark is the mark that an object lacks which an earlier version of the agent may have
// taken over. It gets it when it passes to another owner, who cannot know.
func (e *Engine) staleMark(w Work, live *unstructured.Unstructured) map[string]any {
	if !e.isUnmarked(w, live) {
		return nil
	}
	return map[string]any{e.TakenOverAnnotation: takenOverValue}
}

// unmarked removes all annotations of ours, and says on an object why it stays. One that stays for
// its data says from where it is.
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

// stay is why an object is not deleted. The zero value is that it is.
type stay struct {
	// why is the end of a sentence that begins with the object.
	why string
	// held is set when the object remains the work's, and waits when that may soon change.
	held, waits bool
	// mark is what to say on the object itself.
	mark string
}

// stays decides whether an object stays that has left its work and has no heir.
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
	return e.spare(p.work, found), nil
}

// spare decides whether a container stays, by what is in it. A work that stays keeps it until
// nothing keeps it any more. A deleted work waits for what may be about to go, and releases it:
// its deletion has to end.
func (e *Engine) spare(w Work, found contents) stay {
	if found.isNothing() {
		return stay{}
	}
	elapsed := e.clock.Since(w.Ending)
	ends := !w.Ending.IsZero()
	awaited := len(found.going) > 0 || len(found.unknown) > 0
	switch {
	case len(found.others) == 0 && len(found.unknown) == 0 && ends && elapsed >= e.effort.Removal && !w.RetainsData:
		return stay{} // all that is in it belongs to works that are being deleted
	case ends && len(found.others) == 0 && awaited && elapsed < e.effort.Removal:
		return stay{why: "waits for " + found.text() + ", which it contains", held: true, waits: true}
	case ends:
		return stay{why: "stays on the member: it contains " + found.text(), mark: "contains " + found.text()}
	}
	return stay{why: "stays on the member until it is empty: it contains " + found.text() +
		". To delete it with all that it contains, annotate it with " + e.DeletePolicyAnnotation + "=" + PolicyDelete, held: true}
}
