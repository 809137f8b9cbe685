// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"

	"fleetgate.io/fleetgate/pkg/work/engine/merge"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

const (
	// beforeFirstApply is the manager to which API servers assign fields of an object before its
	// first server-side apply.
	beforeFirstApply = "before-first-apply"

	// maxAnnotations is the limit of API servers for the total size of an object's annotations.
	maxAnnotations = 256 << 10
)

// write changes live (nil if there is no object) to the desired state and returns the object
// afterwards.
func (e *Engine) write(ctx context.Context, t task, it Item, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	switch it.Mode.Method {
	case Replace:
		return e.replace(ctx, t, it, live)
	case CreateOnly:
		return e.createOnly(ctx, t, it, live)
	}
	if it.Mode.Leave.isApplied(live) {
		return e.setOwners(ctx, t.Record, it, live)
	}
	if err := e.staysHeadless(it, live); err != nil {
		return nil, err
	}
	desired, merging := e.desire(t.Record, it, live)
	if !merging {
		return e.serverSide(ctx, t, it, desired, live)
	}
	if live == nil {
		return e.at(it).Create(ctx, desired, metav1.CreateOptions{FieldManager: e.Manager})
	}
	return e.mergeInto(ctx, it, desired, live)
}

// mergeInto merges the manifest into the object, and merges again if fields that are beside those of the
// manifest exclude them.
func (e *Engine) mergeInto(ctx context.Context, it Item, desired, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	base := e.lastApplied(it, live)
	written, err := e.patch(ctx, it, base, desired, live)
	if !apierrors.IsInvalid(err) {
		return written, err
	}
	bySchema := !e.merger.Known.Recognizes(it.object.GroupVersionKind())
	if base = withExcluded(base, desired, live, err, bySchema); base == nil {
		return nil, err
	}
	return e.patch(ctx, it, base, desired, live)
}

// patch returns live if it needs no change.
func (e *Engine) patch(ctx context.Context, it Item, base []byte, desired, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	patch, err := e.merge(it, base, desired, live)
	if err != nil || patch.IsEmpty() {
		return live, err
	}
	return e.at(it).Patch(ctx, it.Ref.Name, patch.Type, patch.Data, metav1.PatchOptions{FieldManager: e.Manager})
}

// differs reports whether write would change live. It changes nothing.
func (e *Engine) differs(ctx context.Context, t task, it Item, live *unstructured.Unstructured) (bool, error) {
	switch it.Mode.Method {
	case Replace:
		return needsReplacing(t, it, replacement(it, live, t.Record), live), nil
	case CreateOnly:
		return len(live.GetOwnerReferences()) != len(ownersOf(it, live, t.Record)), nil
	}
	if it.Mode.Leave.isApplied(live) {
		return false, nil
	}
	desired, merging := e.desire(t.Record, it, live)
	if merging {
		patch, err := e.merge(it, e.lastApplied(it, live), desired, live)
		return !patch.IsEmpty(), err
	}
	found, err := e.rehearse(ctx, it, live)
	return len(found.Fields) > 0, err
}

// desire returns the object to merge into live, or to apply server-side.
func (e *Engine) desire(owner metav1.OwnerReference, it Item, live *unstructured.Unstructured) (desired *unstructured.Unstructured, merging bool) {
	desired, merging = it.object.DeepCopy(), e.merges(it, live)
	if !merging && it.Mode.Leave != nil {
		it.object = it.Mode.Leave.of(it.object, live)
		desired = it.object.DeepCopy()
	}
	if !merging {
		manifest.DropUnsetTimes(desired.Object)
	}
	if annotations := e.annotations(it, merging); len(annotations) > 0 {
		desired.SetAnnotations(annotations)
	}
	if !merging && !it.Mode.OwnTogether {
		live = nil
	}
	desired.SetOwnerReferences(ownersOf(it, live, owner))
	return desired, merging
}

// merges reports whether the manifest is merged on the client side. A manifest that is too large
// for the last-applied annotation is applied server-side instead, with force, since a merge
// overrides other managers too.
func (e *Engine) merges(it Item, live *unstructured.Unstructured) bool {
	return it.Mode.Method != ServerSide && annotationBytes(e.annotations(it, true), live) <= maxAnnotations
}

// annotations returns the annotations of the manifest and of the engine. A merge records what it
// applied.
func (e *Engine) annotations(it Item, merging bool) map[string]string {
	all := it.object.GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	if e.HashAnnotation != "" {
		all[e.HashAnnotation] = it.hash
	}
	if it.takenOver {
		all[e.TakenOverAnnotation] = takenOverValue
	}
	if merging {
		all[e.AppliedAnnotation] = string(merge.Base(it.object.GroupVersionKind(), it.text))
	}
	return all
}

// merge computes the patch of a client-side apply.
func (e *Engine) merge(it Item, base []byte, desired, live *unstructured.Unstructured) (merge.Patch, error) {
	modified, err := desired.MarshalJSON()
	if err != nil {
		return merge.Patch{}, fmt.Errorf("encoding the wanted object: %w", err)
	}
	current, err := withoutManagers(live).MarshalJSON()
	if err != nil {
		return merge.Patch{}, fmt.Errorf("encoding the object of the member: %w", err)
	}
	patch, err := e.merger.ThreeWay(it.object.GroupVersionKind(), base, modified, current)
	if err != nil {
		return merge.Patch{}, unmergeable{err}
	}
	return patch, nil
}

// withoutManagers returns an object without managedFields, which no manifest has. The rest is
// shared.
func withoutManagers(object *unstructured.Unstructured) *unstructured.Unstructured {
	metadata, _ := object.Object["metadata"].(map[string]any)
	less := &unstructured.Unstructured{Object: maps.Clone(object.Object)}
	metadata = maps.Clone(metadata)
	delete(metadata, "managedFields")
	less.Object["metadata"] = metadata
	return less
}

// managerOf is the field manager of an item's writes.
func (e *Engine) managerOf(it Item) string { return cmp.Or(it.Mode.Manager, e.Manager) }

func (e *Engine) serverSide(ctx context.Context, t task, it Item, desired, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	force := it.Mode.Method == Merge || it.Mode.Force // a manifest too large for a merge overrides too
	alone := false
	if live != nil {
		if err := e.moveFields(ctx, it, live); err != nil {
			return nil, err
		}
		// This holds for this version of the object only: an autoscaler may write the next one.
		alone = !force && onlyHolds(e.managerOf(it), live.GetManagedFields())
	}
	carries := it.Mode.OwnTogether && OwnershipOf(desired.GetOwnerReferences(), t.Record).Shared()
	if live != nil && (it.Mode.KeepDrifts || carries || it.pinned || alone) {
		// The resourceVersion protects later changes: drift since the comparison, fields that the
		// member decides, and removed owners.
		desired.SetResourceVersion(live.GetResourceVersion())
	}
	written, err := e.at(it).Apply(ctx, it.Ref.Name, desired, metav1.ApplyOptions{FieldManager: e.managerOf(it), Force: force || alone})
	if err != nil || !it.Mode.Disown {
		return written, err
	}
	return e.setOwners(ctx, t.Record, it, written) // another manager may have applied our owner reference
}

// moveFields transfers fields that we own by client-side writes to our server-side apply. Otherwise
// a field that left the manifest would stay on the object.
func (e *Engine) moveFields(ctx context.Context, it Item, live *unstructured.Unstructured) error {
	manager := e.managerOf(it)
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New(manager), manager)
	if err != nil {
		return unmergeable{err}
	}
	if len(patch) == 0 {
		return nil
	}
	_, err = e.at(it).Patch(ctx, it.Ref.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: manager})
	return err
}

// onlyHolds reports whether only this manager, and the writer before the first apply, own fields
// outside subresources.
func onlyHolds(manager string, entries []metav1.ManagedFieldsEntry) bool {
	for _, entry := range entries {
		if entry.Subresource == "" && entry.Manager != manager && entry.Manager != beforeFirstApply {
			return false
		}
	}
	return true
}

// annotationBytes returns the size, as API servers count it, of live's annotations after adding the
// wanted ones.
func annotationBytes(wanted map[string]string, live *unstructured.Unstructured) int {
	size := 0
	for key, value := range wanted {
		size += len(key) + len(value)
	}
	if live == nil {
		return size
	}
	for key, value := range live.GetAnnotations() {
		if _, replaced := wanted[key]; !replaced {
			size += len(key) + len(value)
		}
	}
	return size
}
