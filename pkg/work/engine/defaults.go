// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Manifests in envelopes and charts lack the defaults of the API server, and so do manifests of a hub whose
// Kubernetes is older than the member's. An API server assigns a default to the manager of the write that
// needed it, or to none: a field that another manager owns is no default.

// addDefaults adds the defaults of the object to a manifest: fields that the manifest lacks and no other
// manager owns. It adds no items to lists.
func addDefaults(wanted, live *unstructured.Unstructured, us string) {
	entries := live.GetManagedFields()
	if len(entries) == 0 {
		return // Nothing shows who wrote the fields.
	}
	var others []map[string]any
	for i := range entries {
		if entries[i].Manager != us {
			others = append(others, fieldsIn(&entries[i]))
		}
	}
	addUnowned(wanted.Object, withoutManagers(live).Object, others)
}

// addUnowned adds the fields of live that wanted lacks and that no set of fields in others names.
func addUnowned(wanted, live map[string]any, others []map[string]any) {
	for field, value := range live {
		owned, whole := below(others, func(key string) bool { return key == "f:"+field })
		fields, isMap := value.(map[string]any)
		mine, has := wanted[field].(map[string]any)
		switch _, set := wanted[field]; {
		case whole:
		case !set && len(owned) == 0:
			wanted[field] = runtime.DeepCopyJSONValue(value)
		case isMap && has:
			addUnowned(mine, fields, owned)
		case isMap && !set:
			part := map[string]any{}
			if addUnowned(part, fields, owned); len(part) > 0 {
				wanted[field] = part
			}
		default:
			addToItems(wanted[field], value, owned)
		}
	}
}

// addToItems does the same in the items of lists, which are compared by index.
func addToItems(wanted, live any, others []map[string]any) {
	list, _ := wanted.([]any)
	there, _ := live.([]any)
	for i := range min(len(list), len(there)) {
		item, is := list[i].(map[string]any)
		fields, are := there[i].(map[string]any)
		if !is || !are {
			continue
		}
		owned, whole := below(others, func(key string) bool {
			kind, keys := itemNamed(key)
			return kind == "k" && covers(fields, keys)
		})
		if !whole {
			addUnowned(item, fields, owned)
		}
	}
}

// below returns the sets of fields below a field or an item, and whether a manager owns it with all that is in it.
func below(others []map[string]any, is func(key string) bool) (owned []map[string]any, whole bool) {
	for _, fields := range others {
		for key, value := range fields {
			inner, ok := value.(map[string]any)
			if !is(key) || !ok {
				continue
			}
			owned, whole = append(owned, inner), whole || len(inner) == 0
		}
	}
	return owned, whole
}
