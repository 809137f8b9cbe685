// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// stands reports whether applying what is wanted would change nothing: the object has all of
// it, and what was applied to it before has no field that is not wanted any more. Then nothing
// is written, by a gateway that starts where all is installed, or that looks again.
func stands(current, wanted *unstructured.Unstructured) bool {
	return hasAll(current.Object, wanted.Object) && ownsNoMore(current, wanted)
}

// hasAll reports whether a value has all that is wanted of it. A list has as many items, and
// objects may have more fields: defaults, and what others have added.
func hasAll(current, wanted any) bool {
	switch wanted := wanted.(type) {
	case nil:
		return true
	case map[string]any:
		fields, _ := current.(map[string]any)
		for name, field := range wanted {
			if !hasAll(fields[name], field) {
				return false
			}
		}
		return true
	case []any:
		items, _ := current.([]any)
		if len(items) != len(wanted) {
			return false
		}
		for n, item := range wanted {
			if !hasAll(items[n], item) {
				return false
			}
		}
		return true
	default:
		// What was decoded from JSON, and what from an object, have numbers of different types.
		return value.Equals(value.NewValueInterface(current), value.NewValueInterface(wanted))
	}
}

// ownsNoMore reports whether every field that was applied before is wanted. An object to which
// nothing was applied, or of which one cannot read what was, has to be applied to.
func ownsNoMore(current, wanted *unstructured.Unstructured) bool {
	for _, entry := range current.GetManagedFields() {
		if !isOurs(entry) {
			continue
		}
		var applied fieldpath.Set
		if entry.FieldsV1 == nil || applied.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())) != nil {
			return false
		}
		all := true
		applied.Iterate(func(path fieldpath.Path) { all = all && hasPath(wanted.Object, path) })
		return all
	}
	return false
}

// isOurs is true for what this package has applied, and not for what somebody else has
// written in its name.
func isOurs(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == string(FieldOwner) && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}

// hasPath reports whether there is something at a path.
func hasPath(at any, path fieldpath.Path) bool {
	for _, element := range path {
		found := false
		if element.FieldName != nil {
			var fields map[string]any
			if fields, found = at.(map[string]any); found {
				at, found = fields[*element.FieldName]
			}
		} else {
			at, found = itemOf(at, element)
		}
		if !found {
			return false
		}
	}
	return true
}

// itemOf finds an item of a list by its key or its value. A key may have fields that are
// defaults, and not there.
func itemOf(list any, element fieldpath.PathElement) (any, bool) {
	items, _ := list.([]any)
	for _, item := range items {
		switch {
		case element.Value != nil && value.Equals(value.NewValueInterface(item), *element.Value):
			return item, true
		case element.Key != nil && hasKey(item, element):
			return item, true
		}
	}
	return nil, false
}

func hasKey(item any, element fieldpath.PathElement) bool {
	fields, ok := item.(map[string]any)
	for _, key := range *element.Key {
		is, given := fields[key.Name]
		ok = ok && (!given || value.Equals(value.NewValueInterface(is), key.Value))
	}
	return ok
}
