// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/sets"

	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// mergePatch creates a JSON merge patch from the three documents of a three-way merge. The library
// of kubectl reads all numbers as floats: it would not see that 9007199254740992 became
// 9007199254740993, and would round what it writes. If a null has to be set, the result is a JSON patch:
// in a merge patch a null removes the field, and a field with a default would get it.
func mergePatch(original, modified, current []byte, unchanged []mergepatch.PreconditionFunc) (Patch, error) {
	docs, err := readDocuments(original, modified, current)
	if err != nil {
		return Patch{}, err
	}
	docs.keepFinalizers()
	changes := changesOf(nil, docs.original, docs.modified, docs.current)
	fields := map[string]any{}
	for _, c := range changes {
		c.addTo(fields)
	}
	for _, holds := range unchanged {
		if !holds(fields) {
			return Patch{}, mergepatch.NewErrPreconditionFailed(fields)
		}
	}
	if slices.ContainsFunc(changes, change.setsNull) {
		return jsonPatch(changes, docs.current)
	}
	data, err := json.Marshal(fields)
	return Patch{Type: types.MergePatchType, Data: data}, err
}

// keepFinalizers adds to the manifest the finalizers that others added to the object. A list of a merge
// patch replaces that of the object, so the patch would remove them before their controllers have cleaned up.
func (d documents) keepFinalizers() {
	const field = "finalizers"
	of := func(document map[string]any) []any { return asList(asMap(document["metadata"])[field]) }
	was, wanted := of(d.original), of(d.modified)
	if len(was)+len(wanted) == 0 {
		return
	}
	kept := slices.DeleteFunc(slices.Clone(of(d.current)), func(finalizer any) bool {
		return slices.Contains(was, finalizer) && !slices.Contains(wanted, finalizer)
	})
	for _, finalizer := range wanted {
		if !slices.Contains(kept, finalizer) {
			kept = append(kept, finalizer)
		}
	}
	if metadata := asMap(d.modified["metadata"]); metadata != nil && len(kept) > 0 {
		metadata[field] = kept
	}
}

// change is a field to set, or to remove.
type change struct {
	path    []string
	value   any
	removes bool
}

// changesOf returns what current lacks of modified, and removes what left the manifest and is still in
// current. A null that was in the manifest before changes nothing: the member may have its default there.
func changesOf(path []string, original, modified, current map[string]any) []change {
	var changes []change
	for _, field := range sets.List(sets.KeySet(modified)) {
		wanted, is := modified[field], current[field]
		at := append(slices.Clone(path), field)
		inner, isMap := wanted.(map[string]any)
		switch before, had := original[field]; {
		case wanted == nil && (is == nil || before == nil && had):
		case isMap && asMap(is) != nil:
			changes = append(changes, changesOf(at, asMap(before), inner, asMap(is))...)
		case !manifest.Equal(wanted, is):
			changes = append(changes, change{path: at, value: wanted})
		}
	}
	for _, field := range sets.List(sets.KeySet(original)) {
		_, has := modified[field]
		if _, left := current[field]; left && !has { // It can be null.
			changes = append(changes, change{path: append(slices.Clone(path), field), removes: true})
		}
	}
	return changes
}

// setsNull reports whether the value is or has a null, except in lists, which a merge patch replaces as
// they are.
func (c change) setsNull() bool { return !c.removes && hasNull(c.value) }

func hasNull(value any) bool {
	fields, is := value.(map[string]any)
	for _, inner := range fields {
		if hasNull(inner) {
			return true
		}
	}
	return !is && value == nil
}

// addTo adds the change to a merge patch.
func (c change) addTo(patch map[string]any) {
	last := len(c.path) - 1
	for _, field := range c.path[:last] {
		if asMap(patch[field]) == nil {
			patch[field] = map[string]any{}
		}
		patch = asMap(patch[field])
	}
	patch[c.path[last]] = c.value // nil removes it
}

// operation is an operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// jsonPatch encodes changes as a JSON patch. It fails with a conflict if the object has changed.
func jsonPatch(changes []change, current map[string]any) (Patch, error) {
	operations := []operation{{"add", "/metadata/resourceVersion", asMap(current["metadata"])["resourceVersion"]}}
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	for _, c := range changes {
		path := ""
		for _, field := range c.path {
			path += "/" + escape.Replace(field)
		}
		op := "add" // It replaces a value.
		if c.removes {
			op = "remove"
		}
		operations = append(operations, operation{op, path, c.value})
	}
	data, err := json.Marshal(operations)
	return Patch{Type: types.JSONPatchType, Data: data}, err
}

func asList(value any) []any {
	list, _ := value.([]any)
	return list
}
