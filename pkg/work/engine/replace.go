// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"hash/maphash"
	"maps"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A replaced object equals its manifest, so that nothing has to be recorded on it. The API server
// defaults fields, however, so that a difference alone is no reason to write. The engine caches the
// shape of the object after its write, and writes again if the shape differs or is unknown. That
// costs at most one unnecessary write per start of the agent.

// replace makes the object equal to the manifest. Labels, annotations and owners of others,
// finalizers and status stay.
func (e *Engine) replace(ctx context.Context, t task, it Item, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if live == nil {
		wanted := it.object.DeepCopy()
		wanted.SetOwnerReferences(ownersOf(it, nil, t.Record))
		return e.at(it).Create(ctx, wanted, metav1.CreateOptions{FieldManager: e.managerOf(it)})
	}
	wanted := replacement(it, live, t.Record)
	if !needsReplacing(t, it, wanted, live) {
		return live, nil
	}
	written, err := e.update(ctx, it, wanted)
	if !apierrors.IsInvalid(err) || !covers(live.Object, it.object.Object) {
		return written, err
	}
	// The object has all fields of the manifest, and fields that the server filled in cannot be
	// removed: the selector of a Job, the volume of a claim.
	kept := live.DeepCopy()
	kept.Object["metadata"] = wanted.Object["metadata"]
	if apiequality.Semantic.DeepEqual(kept.Object, live.Object) {
		return live, nil
	}
	return e.update(ctx, it, kept)
}

// createOnly creates the object if there is none; otherwise it only updates the owners.
func (e *Engine) createOnly(ctx context.Context, t task, it Item, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if live == nil {
		return e.replace(ctx, t, it, nil)
	}
	return e.setOwners(ctx, t.Record, it, live)
}

// setOwners updates the owner references of the object.
func (e *Engine) setOwners(ctx context.Context, owner metav1.OwnerReference, it Item, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	wanted := live.DeepCopy()
	wanted.SetOwnerReferences(ownersOf(it, live, owner))
	if apiequality.Semantic.DeepEqual(wanted.GetOwnerReferences(), live.GetOwnerReferences()) {
		return live, nil
	}
	return e.update(ctx, it, wanted)
}

func (e *Engine) update(ctx context.Context, it Item, wanted *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return e.at(it).Update(ctx, wanted, metav1.UpdateOptions{FieldManager: e.managerOf(it)})
}

// needsReplacing reports whether live lacks a label, an annotation or an owner, or differs both
// from the manifest and from the shape that the last write left.
func needsReplacing(t task, it Item, wanted, live *unstructured.Unstructured) bool {
	if !apiequality.Semantic.DeepEqual(wanted.Object["metadata"], live.Object["metadata"]) {
		return true
	}
	return !apiequality.Semantic.DeepEqual(wanted.Object, live.Object) && !t.cache.hasShape(it, live)
}

// replacement returns the object to write in place of live.
func replacement(it Item, live *unstructured.Unstructured, owner metav1.OwnerReference) *unstructured.Unstructured {
	wanted := it.object.DeepCopy()
	labels, annotations := wanted.GetLabels(), wanted.GetAnnotations()
	was := live.DeepCopy()
	inherit(wanted, was)
	wanted.Object["metadata"] = was.Object["metadata"]
	if status, has := was.Object["status"]; has {
		wanted.Object["status"] = status
	}
	wanted.SetLabels(joined(live.GetLabels(), labels))
	wanted.SetAnnotations(joined(live.GetAnnotations(), annotations))
	wanted.SetOwnerReferences(ownersOf(it, live, owner))
	return wanted
}

// joined merges two maps; nil if both are empty.
func joined(live, ours map[string]string) map[string]string {
	if len(live)+len(ours) == 0 {
		return nil
	}
	all := make(map[string]string, len(live)+len(ours))
	maps.Copy(all, live)
	maps.Copy(all, ours)
	return all
}

// ownersOf returns the owner references that an object must have. live can be nil.
func ownersOf(it Item, live *unstructured.Unstructured, owner metav1.OwnerReference) []metav1.OwnerReference {
	var there []metav1.OwnerReference
	if live != nil {
		there = live.GetOwnerReferences()
	}
	if it.Mode.Disown {
		return withoutOwner(there, owner)
	}
	return withOwner(there, owner)
}

// covers reports whether an object has all values of a manifest. Lists must be equal in length and
// order.
func covers(object, manifest any) bool {
	switch wanted := manifest.(type) {
	case map[string]any:
		has, ok := object.(map[string]any)
		for key, value := range wanted {
			if !ok || !covers(has[key], value) {
				return false
			}
		}
		return true
	case []any:
		has, ok := object.([]any)
		if !ok && len(wanted) > 0 || len(has) != len(wanted) {
			return false
		}
		for place, value := range wanted {
			if !covers(has[place], value) {
				return false
			}
		}
		return true
	}
	return apiequality.Semantic.DeepEqual(object, manifest)
}

// shapeOf hashes an object without metadata and status. Zero means that it cannot be hashed.
func shapeOf(seed maphash.Seed, object *unstructured.Unstructured) uint64 {
	shape := maps.Clone(object.Object)
	delete(shape, "metadata")
	delete(shape, "status")
	text, err := json.Marshal(shape)
	if err != nil {
		return 0
	}
	return maphash.Bytes(seed, text)
}
