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

// isUpToDate reports whether applying the wanted object would change nothing: the current object has all of
// it, and no previously applied field is unwanted. Then nothing is written when a gateway starts on an
// up-to-date hub, or checks it again.
func isUpToDate(current, wanted *unstructured.Unstructured) bool {
	return hasAll(current.Object, wanted.Object) && ownsNoMore(current, wanted)
}

// hasAll reports whether a value has everything that is wanted. Lists must have the same length;
// objects can have more fields: defaults, and additions of others.
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
		// Numbers decoded from JSON, and numbers of an object, have different types.
		return value.Equals(value.NewValueInterface(current), value.NewValueInterface(wanted))
	}
}

// ownsNoMore reports whether every previously applied field is wanted. It is false for an object that
// was never applied, or whose applied fields are unreadable.
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

// isOurs is true for fields that this package has applied, and not for updates by others with its name.
func isOurs(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == string(FieldOwner) && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}

// hasPath reports whether a value exists at a path.
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

// itemOf finds an item of a list by its key or its value. Fields of a key that are defaults can be
// missing in the item.
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
