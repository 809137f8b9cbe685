// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// beforeFirstApply is the manager to which API servers assign fields of an object before its first
// server-side apply.
const beforeFirstApply = "before-first-apply"

// managerOf is the field manager of an item's writes.
func (e *Engine) managerOf(it Item) string { return cmp.Or(it.Mode.Manager, e.Manager) }

func (e *Engine) serverSide(ctx context.Context, t task, it Item, desired, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if live != nil && onlyHolds(e.managerOf(it), live.GetManagedFields()) {
		merged, err := e.mergeOwned(ctx, it, desired, live, nil)
		if changedSince(err, live) {
			return nil, err
		}
		if err == nil { // otherwise the apply reports the error
			live = merged
		}
	}
	written, err := e.applyOnServer(ctx, t, it, desired, live)
	if live != nil && apierrors.IsInvalid(err) {
		written, err = e.mergeAndApply(ctx, t, it, desired, live, err)
	}
	if err == nil && it.takenOver {
		written, err = e.disownClients(ctx, it, written)
	}
	if err != nil || !it.Mode.Disown {
		return written, err
	}
	return e.setOwners(ctx, t.Record, it, written) // another manager may have applied our owner reference
}

func (e *Engine) applyOnServer(ctx context.Context, t task, it Item, desired, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	force, alone := forces(it), false
	if live != nil {
		if err := e.moveFields(ctx, it, live); err != nil {
			return nil, err
		}
		// This holds for this version of the object only: an autoscaler may write the next one.
		alone = !force && onlyHolds(e.managerOf(it), live.GetManagedFields())
	}
	desired.SetResourceVersion("")
	carries := it.Mode.OwnTogether && OwnershipOf(desired.GetOwnerReferences(), t.Record).Shared()
	if live != nil && (it.Mode.KeepDrifts || carries || it.pinned || alone) {
		// The resourceVersion protects later changes: drift since the comparison, fields that the
		// member decides, and removed owners.
		desired.SetResourceVersion(live.GetResourceVersion())
	}
	options := metav1.ApplyOptions{FieldManager: e.managerOf(it), Force: force || alone}
	written, err := e.at(it).Apply(ctx, it.Ref.Name, desired, options)
	if live == nil || !cannotPrune(err) {
		return written, err
	}
	renewed, failure := e.renewVersion(ctx, it)
	if failure != nil || renewed == nil {
		return nil, err
	}
	if desired.GetResourceVersion() != "" {
		desired.SetResourceVersion(renewed.GetResourceVersion())
	}
	return e.at(it).Apply(ctx, it.Ref.Name, desired, options)
}

// cannotPrune recognizes the error of an apply that has to convert the object into the version of the last one, which
// does not have a field of the new version, as in a CustomResourceDefinition without a conversion webhook. API
// servers have no machine-readable cause for it.
func cannotPrune(err error) bool {
	return err != nil && strings.Contains(err.Error(), "failed to prune fields")
}

// renewVersion assigns the fields that we own in other versions to the version of the manifest. It returns nil if there
// are none.
func (e *Engine) renewVersion(ctx context.Context, it Item) (*unstructured.Unstructured, error) {
	live, err := e.find(ctx, it)
	if err != nil || live == nil {
		return nil, err
	}
	entries, changed := live.GetManagedFields(), false
	for i := range entries {
		if entry := &entries[i]; entry.Manager == e.managerOf(it) && entry.APIVersion != live.GetAPIVersion() {
			entry.APIVersion, changed = live.GetAPIVersion(), true
		}
	}
	if !changed {
		return nil, nil
	}
	return e.setManagers(ctx, it, live, entries)
}

// setManagers replaces the managed fields of an object.
func (e *Engine) setManagers(ctx context.Context, it Item, object *unstructured.Unstructured, entries []metav1.ManagedFieldsEntry) (*unstructured.Unstructured, error) {
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": object.GetResourceVersion()},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding managed fields: %w", err)
	}
	return e.at(it).Patch(ctx, it.Ref.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: e.managerOf(it)})
}

// forces reports whether a server-side apply takes fields of other managers. A manifest that is too large
// for a merge overrides them too.
func forces(it Item) bool { return it.Mode.Method == Merge || it.Mode.Force }

// A server-side apply cannot remove a field that nobody owns, such as the default of another strategy. It
// turns a map or list into null if all that it had is removed, although the manifest has it as an empty one.
// In both cases the engine merges first.

// mergeAndApply merges and applies a manifest that the member rejects. The error is that of the manifest if
// this does not help.
func (e *Engine) mergeAndApply(ctx context.Context, t task, it Item, desired, live *unstructured.Unstructured, refused error) (*unstructured.Unstructured, error) {
	excludes := refused
	if !forces(it) && !onlyHolds(e.managerOf(it), live.GetManagedFields()) {
		excludes = nil // Other managers may own what excludes a field.
	}
	merged, err := e.mergeOwned(ctx, it, desired, live, excludes)
	switch {
	case changedSince(err, live):
		return nil, err
	case err != nil || merged == live:
		return nil, refused
	}
	written, err := e.applyOnServer(ctx, t, it, desired, merged)
	if apierrors.IsInvalid(err) {
		return nil, refused
	}
	return written, err
}

// mergeOwned merges the manifest into an object of which our server-side applies own fields, and removes what
// excludes the refused fields. It returns live if there is no field to remove.
func (e *Engine) mergeOwned(ctx context.Context, it Item, desired, live *unstructured.Unstructured, refused error) (*unstructured.Unstructured, error) {
	empty := e.empties(it, desired, live)
	if !empty && refused == nil {
		return live, nil
	}
	base, err := json.Marshal(ownedFields(live, e.managerOf(it)))
	if err != nil {
		return nil, fmt.Errorf("encoding the owned fields: %w", err)
	}
	extended := withExcluded(base, desired, live, refused, !e.merger.Known.Recognizes(it.object.GroupVersionKind()))
	if extended != nil {
		base = extended
	} else if !empty {
		return live, nil
	}
	return e.patch(ctx, it, base, desired, live)
}

// empties reports whether the manifest has nothing but empty values in a map or list of which its predecessor had
// contents.
func (e *Engine) empties(it Item, wanted, live *unstructured.Unstructured) bool {
	return slices.ContainsFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == e.managerOf(it) && entry.Subresource == "" &&
			isEmptied(wanted.Object, live.Object, fieldsIn(&entry))
	})
}

// isEmptied reports whether a value has only empty values where live has contents that the fields name.
func isEmptied(wanted, live any, fields map[string]any) bool {
	contents := false
	for field := range fields {
		contents = contents || field != "."
	}
	switch wanted := wanted.(type) {
	case []any:
		list, _ := live.([]any)
		return contents && len(wanted) == 0 && len(list) > 0
	case map[string]any:
		there, _ := live.(map[string]any)
		if isHollow(wanted) {
			return contents && len(there) > 0
		}
		for field, value := range wanted {
			if below, _ := fields["f:"+field].(map[string]any); below != nil && isEmptied(value, there[field], below) {
				return true
			}
		}
	}
	return false
}

// isHollow reports whether a value consists of empty maps and lists.
func isHollow(value any) bool {
	switch value := value.(type) {
	case []any:
		return len(value) == 0
	case map[string]any:
		for _, inner := range value {
			if !isHollow(inner) {
				return false
			}
		}
		return true
	}
	return false
}

// disownClients removes from an object that was taken over the ownership of the clients with which people
// applied it before, in fields that we own too. Such a client does not apply the object again, and the
// fields would stay on the object when they leave the manifest.
func (e *Engine) disownClients(ctx context.Context, it Item, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	entries, changed := withoutClients(object.GetManagedFields(), e.managerOf(it))
	if !changed {
		return object, nil
	}
	return e.setManagers(ctx, it, object, entries)
}

// withoutClients returns the entries without what clients of people own together with us.
func withoutClients(entries []metav1.ManagedFieldsEntry, us string) (kept []metav1.ManagedFieldsEntry, changed bool) {
	ours := slices.IndexFunc(entries, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == us && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
	})
	if ours < 0 {
		return entries, false
	}
	applied := setOf(entries[ours])
	for _, entry := range entries {
		if isClient(entry.Manager) && entry.Subresource == "" && entry.APIVersion == entries[ours].APIVersion {
			set := setOf(entry)
			rest := set.Difference(applied)
			text, err := rest.ToJSON()
			if err == nil && !rest.Equals(set) {
				changed = true
				entry.FieldsV1 = metav1.NewFieldsV1(string(text))
			}
			if changed && rest.Empty() {
				continue
			}
		}
		kept = append(kept, entry)
	}
	return kept, changed
}

// setOf returns the fields of an entry; none if they cannot be read.
func setOf(entry metav1.ManagedFieldsEntry) *fieldpath.Set {
	set := &fieldpath.Set{}
	if entry.FieldsV1 == nil || set.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
		return &fieldpath.Set{}
	}
	return set
}

// isClient recognizes clients with which people apply manifests: kubectl and Helm.
func isClient(manager string) bool {
	return strings.HasPrefix(manager, "kubectl") || manager == "helm" || manager == beforeFirstApply
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
