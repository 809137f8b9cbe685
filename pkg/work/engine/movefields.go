// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
)

// moveFields transfers fields that we own by client-side writes to our server-side apply. Otherwise
// a field that left the manifest would stay on the object.
func (e *Engine) moveFields(ctx context.Context, it Item, live *unstructured.Unstructured) error {
	manager := e.managerOf(it)
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(e.withoutDefaults(it, live), sets.New(manager), manager)
	if err != nil {
		return unmergeable{err}
	}
	if len(patch) == 0 {
		return nil
	}
	_, err = e.at(it).Patch(ctx, it.Ref.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: manager})
	return err
}

// withoutDefaults returns the object, of which our client-side writes own only what the last manifest set. Our
// creation owns defaults too, also those of admission plugins. An apply would remove them, and a default that is
// set at creation only, such as the class of an Ingress, would be lost.
func (e *Engine) withoutDefaults(it Item, live *unstructured.Unstructured) *unstructured.Unstructured {
	before := e.recorded(it, live)
	if before == nil {
		return live
	}
	entries := live.GetManagedFields()
	for i, entry := range entries {
		if entry.Manager != e.managerOf(it) || entry.Operation != metav1.ManagedFieldsOperationUpdate || entry.Subresource != "" {
			continue
		}
		fields := fieldsIn(&entry)
		metadata, has := fields["f:metadata"]
		fields = setFields(fields, before)
		if has {
			fields["f:metadata"] = metadata // It has owners and our annotations, which no manifest has.
		}
		text, err := json.Marshal(fields)
		if err != nil {
			return live
		}
		entries[i].FieldsV1 = metav1.NewFieldsV1(string(text))
	}
	reduced := live.DeepCopy()
	reduced.SetManagedFields(entries)
	return reduced
}

// setFields returns the part of a managedFields set that a manifest sets.
func setFields(fields map[string]any, manifest any) map[string]any {
	part := map[string]any{}
	for key, within := range fields {
		value, has := namedIn(key, manifest)
		inner, _ := within.(map[string]any)
		switch {
		case !has:
		case len(inner) == 0:
			part[key] = within
		default:
			part[key] = setFields(inner, value)
		}
	}
	return part
}

// namedIn returns the value of a manifest that a name in a managedFields set leads to. An item whose key has a
// default, such as the protocol of a port, can lack it.
func namedIn(name string, manifest any) (any, bool) {
	if name == "." {
		return manifest, true
	}
	if field, is := strings.CutPrefix(name, "f:"); is {
		fields, _ := manifest.(map[string]any)
		value, has := fields[field]
		return value, has
	}
	kind, named := itemNamed(name)
	list, _ := manifest.([]any)
	at := slices.IndexFunc(list, func(item any) bool {
		fields, _ := item.(map[string]any)
		keys, _ := named.(map[string]any)
		if kind == "v" || fields == nil || keys == nil {
			return kind == "v" && apiequality.Semantic.DeepEqual(item, named)
		}
		for key, value := range keys {
			if own, has := fields[key]; has && !apiequality.Semantic.DeepEqual(own, value) {
				return false
			}
		}
		return true
	})
	if at < 0 {
		return nil, false
	}
	return list[at], true
}
