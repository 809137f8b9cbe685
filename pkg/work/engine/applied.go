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

// lastApplied is what of live an earlier manifest has set, as far as it is known: the manifest
// as it was merged last, or, if the object does not carry one, the fields that we hold by
// server-side applies. Without them, what has left the manifest would stay on the object.
func (e *Engine) lastApplied(it Item, live *unstructured.Unstructured) []byte {
	text := []byte(live.GetAnnotations()[e.AppliedAnnotation])
	if json.Valid(text) {
		return e.asLeft(it, live, folded(it, text))
	}
	before := heldFields(live, e.managerOf(it))
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

// asLeft is a last manifest with what is left to the member as the member has it: else a field
// that is gone on the member would be removed with each merge.
func (e *Engine) asLeft(it Item, live *unstructured.Unstructured, text []byte) []byte {
	before := map[string]any{}
	if len(it.left) == 0 || json.Unmarshal(text, &before) != nil {
		return text
	}
	e.adopt(it, before, live, false)
	after, err := json.Marshal(before)
	if err != nil {
		return text
	}
	return after
}

// folded is a last manifest as manifests are read now: earlier versions left stringData in it.
func folded(it Item, text []byte) []byte {
	before := map[string]any{}
	if !manifest.IsSecret(it.object.GroupVersionKind().GroupKind()) || json.Unmarshal(text, &before) != nil {
		return text
	}
	manifest.FoldStringData(before)
	after, err := json.Marshal(before)
	if err != nil {
		return text
	}
	return after
}

// heldFields are the fields of an object, with their values, that a manager has applied on the
// server's side. Of its other writes only the data counts: a creation holds defaults too.
func heldFields(object *unstructured.Unstructured, manager string) map[string]any {
	held := map[string]any{}
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
			join(held, found)
		}
	}
	if metadata, has := held["metadata"].(map[string]any); has {
		delete(metadata, "ownerReferences") // no manifest has any
	}
	return held
}

// join adds the fields of more to all. Lists, which managers rarely share, are those of more.
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

// valueOf is what of a value a set of fields, as managedFields write one, names. The empty set
// names all of it; "." in one is the map or list itself, which is there if anything within is.
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
			if below, held := partOfItem(fields, item); held {
				part = append(part, below)
			}
		}
		return part
	}
	return value
}

// partOfItem is what of an item of a list a set of fields names.
func partOfItem(fields map[string]any, item any) (any, bool) {
	for key, within := range fields {
		kind, text, _ := strings.Cut(key, ":")
		var named any
		if kind != "k" && kind != "v" || utiljson.Unmarshal([]byte(text), &named) != nil {
			continue
		}
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
