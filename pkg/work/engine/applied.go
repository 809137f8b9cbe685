// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"maps"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// lastApplied returns the fields of live that an earlier manifest set. It reads the last-applied
// annotation or, without one, the fields that our server-side applies own. Without this base,
// fields that left the manifest would stay on the object.
func (e *Engine) lastApplied(it Item, live *unstructured.Unstructured) []byte {
	text := []byte(live.GetAnnotations()[e.AppliedAnnotation])
	if json.Valid(text) {
		return e.asLeft(it, live, folded(it, text))
	}
	before := ownedFields(live, e.managerOf(it))
	e.adopt(it, before, live, false)
	if len(before) == 0 {
		return nil
	}
	text, err := json.Marshal(before)
	if err != nil {
		return nil
	}
	return text
}

// asLeft returns the last manifest with the member's values in the fields that the member decides.
// Otherwise every merge would remove such a field if the member has deleted it.
func (e *Engine) asLeft(it Item, live *unstructured.Unstructured, text []byte) []byte {
	before := map[string]any{}
	if len(it.left) == 0 || utiljson.Unmarshal(text, &before) != nil {
		return text
	}
	e.adopt(it, before, live, false)
	after, err := json.Marshal(before)
	if err != nil {
		return text
	}
	return after
}

// recorded returns the last manifest as the object's annotation has it; nil without one.
func (e *Engine) recorded(it Item, live *unstructured.Unstructured) map[string]any {
	before := map[string]any{}
	if utiljson.Unmarshal(folded(it, []byte(live.GetAnnotations()[e.AppliedAnnotation])), &before) != nil {
		return nil
	}
	return before
}

// folded converts a last manifest to the current form: earlier versions of the agent left
// stringData in it.
func folded(it Item, text []byte) []byte {
	before := map[string]any{}
	if !manifest.IsSecret(it.object.GroupVersionKind().GroupKind()) || utiljson.Unmarshal(text, &before) != nil {
		return text
	}
	manifest.FoldStringData(before)
	after, err := json.Marshal(before)
	if err != nil {
		return text
	}
	return after
}

// ownedFields returns the fields, with values, that a manager owns by server-side apply. Of its
// other writes only data counts, because a create also owns defaulted fields.
func ownedFields(object *unstructured.Unstructured, manager string) map[string]any {
	retained := map[string]any{}
	for _, entry := range object.GetManagedFields() {
		if entry.Manager != manager || entry.Subresource != "" || entry.FieldsV1 == nil || entry.APIVersion != object.GetAPIVersion() {
			continue
		}
		fields := map[string]any{}
		if utiljson.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if entry.Operation != metav1.ManagedFieldsOperationApply {
			maps.DeleteFunc(fields, func(field string, _ any) bool { return field != "f:data" && field != "f:binaryData" })
		}
		if found, is := valueOf(fields, object.Object).(map[string]any); is && len(fields) > 0 {
			join(retained, found)
		}
	}
	if metadata, has := retained["metadata"].(map[string]any); has {
		delete(metadata, "ownerReferences") // no manifest has any
	}
	return retained
}

// join merges the fields of more into all. A list of more replaces that of all: managers rarely
// share lists.
func join(all, more map[string]any) {
	for field, value := range more {
		into, has := all[field].(map[string]any)
		from, is := value.(map[string]any)
		if has && is {
			join(into, from)
			continue
		}
		all[field] = value
	}
}

// valueOf selects the part of a value that a managedFields set names. The empty set names all of
// the value. "." names the map or list itself, which exists if any of its fields does.
func valueOf(fields map[string]any, value any) any {
	if len(fields) == 0 {
		return value
	}
	switch value := value.(type) {
	case map[string]any:
		part := map[string]any{}
		for key, within := range fields {
			name, is := strings.CutPrefix(key, "f:")
			inner, has := value[name]
			if below, ok := within.(map[string]any); is && has && ok {
				part[name] = valueOf(below, inner)
			}
		}
		return part
	case []any:
		part := []any{}
		for _, item := range value {
			if below, retained := partOfItem(fields, item); retained {
				part = append(part, below)
			}
		}
		return part
	}
	return value
}

// partOfItem selects the part of a list item that a managedFields set names.
func partOfItem(fields map[string]any, item any) (any, bool) {
	for key, within := range fields {
		kind, named := itemNamed(key)
		if kind == "v" && apiequality.Semantic.DeepEqual(named, item) {
			return item, true
		}
		keys, ok := named.(map[string]any)
		all, is := item.(map[string]any)
		below, has := within.(map[string]any)
		if kind != "k" || !ok || !is || !has || !covers(all, keys) {
			continue
		}
		part, _ := valueOf(below, item).(map[string]any)
		part = maps.Clone(part)
		if part == nil {
			part = map[string]any{}
		}
		maps.Copy(part, keys)
		return part, true
	}
	return nil, false
}

// itemNamed decodes the name of a list item in a managedFields set: k with the item's keys, or v with its value. The
// kind is empty for other names.
func itemNamed(name string) (kind string, named any) {
	kind, text, _ := strings.Cut(name, ":")
	if kind != "k" && kind != "v" || utiljson.Unmarshal([]byte(text), &named) != nil {
		return "", nil
	}
	return kind, named
}
