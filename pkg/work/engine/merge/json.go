// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/util/mergepatch"

	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// mergePatch creates a JSON merge patch from the three documents of a three-way merge. The library
// of kubectl reads all numbers as floats: it would not see that 9007199254740992 became
// 9007199254740993, and would round what it writes.
func mergePatch(original, modified, current []byte, unchanged []mergepatch.PreconditionFunc) ([]byte, error) {
	docs, err := readDocuments(original, modified, current)
	if err != nil {
		return nil, err
	}
	patch := patchOf(docs.original, docs.modified, docs.current)
	for _, holds := range unchanged {
		if !holds(patch) {
			return nil, mergepatch.NewErrPreconditionFailed(patch)
		}
	}
	return json.Marshal(patch)
}

// patchOf returns what current lacks of modified, and null for what left the manifest and is still in
// current. A null that is new in the manifest removes the field too.
func patchOf(original, modified, current map[string]any) map[string]any {
	patch := map[string]any{}
	for field, wanted := range modified {
		is := current[field]
		inner, isMap := wanted.(map[string]any)
		switch before, had := original[field]; {
		case wanted == nil && is != nil && (before != nil || !had):
			patch[field] = nil
		case wanted == nil:
		case isMap && asMap(is) != nil:
			if below := patchOf(asMap(before), inner, asMap(is)); len(below) > 0 {
				patch[field] = below
			}
		case !manifest.Equal(wanted, is):
			patch[field] = withoutNulls(wanted)
		}
	}
	for field := range original {
		if _, has := modified[field]; !has && current[field] != nil {
			patch[field] = nil
		}
	}
	return patch
}

// withoutNulls returns a value without null fields, which a patch cannot set. Lists are replaced as
// a whole, so their items keep theirs.
func withoutNulls(value any) any {
	fields, ok := value.(map[string]any)
	if !ok {
		return value
	}
	kept := make(map[string]any, len(fields))
	for field, inner := range fields {
		if inner != nil {
			kept[field] = withoutNulls(inner)
		}
	}
	return kept
}
