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

// A work can leave a member although nobody asked to remove its data: the scheduler chose another
// cluster. The engine releases objects that hold data in that case. A Namespace or
// CustomResourceDefinition holds data while it contains objects; see contents.go.

// Retained is an object that left its work and stays on the member.
type Retained struct {
	Ref manifest.Ref
	// Why is a sentence whose subject is the object.
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

// isRetained reports whether the object stayed on the member when its work left.
func (e *Engine) isRetained(live *unstructured.Unstructured) bool {
	return e.RetainedAnnotation != "" && live.GetAnnotations()[e.RetainedAnnotation] != ""
}

// returns reports whether the object stayed on the member for its data when a work of the same
// origin left, and has had no owner since.
func (e *Engine) returns(t task, live *unstructured.Unstructured) bool {
	return e.RetainedFromAnnotation != "" && t.Origin != "" && e.isRetained(live) &&
		live.GetAnnotations()[e.RetainedFromAnnotation] == t.Origin && len(live.GetOwnerReferences()) == 0
}

// readmit makes the work an owner of a retained object and removes the retained annotations, in one
// write. The caller has to retry (done is false): the next attempt applies the manifest.
func (e *Engine) readmit(ctx context.Context, t task, it Item, live *unstructured.Unstructured) (ManifestResult, bool) {
	annotations := map[string]any{e.RetainedAnnotation: nil}
	if e.RetainedFromAnnotation != "" {
		annotations[e.RetainedFromAnnotation] = nil
	}
	if e.takesOver(t, live) {
		annotations[e.TakenOverAnnotation] = takenOverValue
	}
	err := e.leave(ctx, e.at(it), live, t.Record, &t.Record, annotations)
	if err != nil && !changedSince(err, live) {
		out := e.failed(it, live, NotWritten, err)
		out.Owned = out.Err != nil || OwnershipOf(live.GetOwnerReferences(), t.Record).Ours
		return out, true
	}
	return ManifestResult{}, false
}
