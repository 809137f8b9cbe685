// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"fmt"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	addonv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1beta1"
)

// Convert converts an object to a version, in place. From v1alpha1, it does not fail for a kind of
// [Definitions]. After an error, the object is undefined.
func Convert(object map[string]any, apiVersion string) error {
	stored, beta := addonv1alpha1.GroupVersion.String(), addonv1beta1.GroupVersion.String()
	from, kind := text(object, "apiVersion"), text(object, "kind")
	known := kind == "ManagedClusterAddOn" || kind == "ClusterManagementAddOn"
	switch {
	case known && from == apiVersion:
		return nil
	case known && from == stored && apiVersion == beta:
		var saved fields
		if kind == "ManagedClusterAddOn" {
			saved = managedToBeta(object)
		} else {
			saved = managementToBeta(object)
		}
		saved.annotate(object)
	case known && from == beta && apiVersion == stored:
		saved, err := takeFields(object)
		if err != nil {
			return err
		}
		if kind == "ManagedClusterAddOn" {
			err = managedToStored(object, saved)
		} else {
			err = managementToStored(object, saved)
		}
		if err != nil {
			return err
		}
	default:
		return fmt.Errorf("cannot convert kind %q from %q to %q", kind, from, apiVersion)
	}
	object["apiVersion"] = apiVersion
	return nil
}

// text returns a string, or "" for anything else.
func text(object map[string]any, field string) string {
	value, _ := object[field].(string)
	return value
}

// child returns an object, or nil for anything else. Reading a field of nil is allowed.
func child(object map[string]any, field string) map[string]any {
	value, _ := object[field].(map[string]any)
	return value
}

// objects calls visit for each object of a list of objects.
func objects(object map[string]any, field string, visit func(i int, item map[string]any) error) error {
	items, _ := object[field].([]any)
	for i := range items {
		if item, ok := items[i].(map[string]any); ok {
			if err := visit(i, item); err != nil {
				return err
			}
		}
	}
	return nil
}

// each is objects for visits that cannot fail.
func each(object map[string]any, field string, visit func(i int, item map[string]any)) {
	_ = objects(object, field, func(i int, item map[string]any) error {
		visit(i, item)
		return nil
	})
}

// move renames a field.
func move(object map[string]any, from, to string) {
	value, found := object[from]
	if !found {
		return
	}
	delete(object, from)
	object[to] = value
}

// set sets a field, or removes it if the text is empty.
func set(object map[string]any, field, value string) {
	if value == "" {
		delete(object, field)
		return
	}
	object[field] = value
}

// in returns the object in a field, and creates it if there is none.
func in(object map[string]any, field string) map[string]any {
	if value, ok := object[field].(map[string]any); ok {
		return value
	}
	made := map[string]any{}
	object[field] = made
	return made
}
