// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// A work can go although nobody has asked for the removal of its data: another cluster was chosen.
// What holds data is released then. A Namespace or CustomResourceDefinition holds data as long as
// something is in it, which contents.go finds out.

// Retained is an object that has left its work and stays on the member.
type Retained struct {
	Ref manifest.Ref
	// Why is a sentence that begins with the object.
	Why string
}

// holdsData reports whether objects of a kind hold data themselves.
func holdsData(kind schema.GroupKind) bool {
	switch kind {
	case schema.GroupKind{Group: corev1.GroupName, Kind: "PersistentVolumeClaim"},
		schema.GroupKind{Group: corev1.GroupName, Kind: "PersistentVolume"}:
		return true
	}
	return false
}

// isRetained reports whether an object has stayed on the member when its work went.
func (e *Engine) isRetained(live *unstructured.Unstructured) bool {
	return e.RetainedAnnotation != "" && live.GetAnnotations()[e.RetainedAnnotation] != ""
}

// returns reports whether an object has stayed on the member for its data when a work of the same
// origin went, and has got no owner since.
func (e *Engine) returns(t task, live *unstructured.Unstructured) bool {
	return e.RetainedFromAnnotation != "" && t.origin != "" && e.isRetained(live) &&
		live.GetAnnotations()[e.RetainedFromAnnotation] == t.origin && len(live.GetOwnerReferences()) == 0
}

// readmit makes the work an owner of an object that has stayed on the member, and removes the marks
// that say so, in one write. It is not done: the manifest is applied by the next attempt.
func (e *Engine) readmit(ctx context.Context, t task, it Item, live *unstructured.Unstructured) (Outcome, bool) {
	annotations := map[string]any{e.RetainedAnnotation: nil}
	if e.RetainedFromAnnotation != "" {
		annotations[e.RetainedFromAnnotation] = nil
	}
	if e.takesOver(t, live) {
		annotations[e.TakenOverAnnotation] = takenOverValue
	}
	err := e.leave(ctx, e.at(it), live, t.owner, &t.owner, annotations)
	if err != nil && !overtaken(err, live) {
		out := e.failed(it, live, NotWritten, err)
		out.Holds = out.Err != nil || StandingOf(live.GetOwnerReferences(), t.owner).Ours
		return out, true
	}
	return Outcome{}, false
}
