// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"encoding/json"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/mergepatch"
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
		case !equal(wanted, is):
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

// equal compares values as JSON does: 1 equals 1.0.
func equal(a, b any) bool {
	switch x := a.(type) {
	case int64:
		if y, ok := b.(float64); ok {
			return float64(x) == y
		}
	case float64:
		if y, ok := b.(int64); ok {
			return x == float64(y)
		}
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for place := range x {
			if !equal(x[place], y[place]) {
				return false
			}
		}
		return true
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for key, value := range x {
			if other, has := y[key]; !has || !equal(value, other) {
				return false
			}
		}
		return true
	}
	return apiequality.Semantic.DeepEqual(a, b)
}
