// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// MaxBytes is the size limit of a manifest: the default request limit of an API server.
const MaxBytes = 3 << 19

// ErrGenerateName is returned for a manifest with generateName only: applied twice, it would create
// two objects.
var ErrGenerateName = errors.New("metadata.generateName is not accepted: give the manifest a metadata.name")

// serverFields are metadata fields that an API server sets. A manifest that was read from a cluster
// contains them, but they describe another object.
var serverFields = []string{
	"uid", "resourceVersion", "generation", "selfLink",
	"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
	"managedFields", "ownerReferences",
}

// Decode decodes one object, without its status and without metadata that only an API server sets.
// Errors tell the author of the manifest what to change. ErrGenerateName can be tested with
// errors.Is.
func Decode(raw []byte) (*unstructured.Unstructured, error) {
	if len(raw) == 0 {
		return nil, errors.New("the manifest is empty")
	}
	if len(raw) > MaxBytes {
		return nil, fmt.Errorf("the manifest has %d bytes, the limit is %d", len(raw), MaxBytes)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("the manifest is not a JSON object: %w", err)
	}
	object := &unstructured.Unstructured{Object: fields}
	if err := checkKind(object); err != nil {
		return nil, err
	}
	dropUnsetFields(object)
	if err := checkMetadata(object); err != nil {
		return nil, err
	}
	dropServerFields(object)
	if IsSecret(object.GroupVersionKind().GroupKind()) {
		FoldStringData(object.Object)
	}
	return object, nil
}

func checkKind(object *unstructured.Unstructured) error {
	for _, field := range []string{"apiVersion", "kind"} {
		value, _, err := unstructured.NestedString(object.Object, field)
		if err != nil || value == "" {
			return fmt.Errorf("%s is missing or not a string", field)
		}
	}
	if _, err := schema.ParseGroupVersion(object.GetAPIVersion()); err != nil {
		return fmt.Errorf("apiVersion is not <group>/<version>: %w", err)
	}
	if object.IsList() {
		return errors.New("a list is not accepted: write each of its items as a manifest")
	}
	return nil
}

func checkMetadata(object *unstructured.Unstructured) error {
	if _, ok := object.Object["metadata"].(map[string]any); !ok {
		return errors.New("metadata is missing or not an object")
	}
	for _, field := range []string{"name", "namespace", "generateName"} {
		value, _, err := unstructured.NestedString(object.Object, "metadata", field)
		if err != nil {
			return fmt.Errorf("metadata.%s is not a string", field)
		}
		if value == "" || field == "generateName" {
			continue
		}
		if wrong := content.IsPathSegmentName(value); len(wrong) > 0 {
			return fmt.Errorf("metadata.%s %s", field, wrong[0])
		}
	}
	for _, field := range []string{"labels", "annotations"} {
		if _, _, err := unstructured.NestedStringMap(object.Object, "metadata", field); err != nil {
			return fmt.Errorf("metadata.%s is not a map of strings", field)
		}
	}
	if object.GetName() != "" {
		return nil
	}
	if object.GetGenerateName() != "" {
		return ErrGenerateName
	}
	return errors.New("metadata.name is missing")
}

func dropServerFields(object *unstructured.Unstructured) {
	for _, field := range serverFields {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(object.Object, "status")
}

// dropUnsetFields removes fields that are null, as templates often write them, from the metadata and from objects
// of built-in kinds. A null is a missing field there. A merge or an apply would remove what others set.
func dropUnsetFields(object *unstructured.Unstructured) {
	if clientgoscheme.Scheme.Recognizes(object.GroupVersionKind()) {
		dropNulls(object.Object)
	}
	dropNulls(object.Object["metadata"])
}

// dropNulls removes null fields from all maps in a value. Items of lists stay.
func dropNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if inner == nil {
				delete(value, key)
			}
			dropNulls(inner)
		}
	case []any:
		for _, item := range value {
			dropNulls(item)
		}
	}
}

// DropUnsetTimes removes null creationTimestamps from all nested metadata. Programs write them into
// templates. An API server treats each one as a change in a server-side apply, and raises the
// generation.
func DropUnsetTimes(fields map[string]any) {
	for key, value := range fields {
		switch value := value.(type) {
		case map[string]any:
			if time, has := value["creationTimestamp"]; key == "metadata" && has && time == nil {
				delete(value, "creationTimestamp")
			}
			DropUnsetTimes(value)
		case []any:
			for _, item := range value {
				if of, is := item.(map[string]any); is {
					DropUnsetTimes(of)
				}
			}
		}
	}
}
