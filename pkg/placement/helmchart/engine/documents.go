// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// hookAnnotation says when Helm runs an object separately.
const hookAnnotation = "helm.sh/hook"

// applied is true for hooks that are ordinary objects here.
func applied(hook string) bool {
	switch strings.ToLower(strings.TrimSpace(hook)) {
	case "pre-install", "post-install", "pre-upgrade", "post-upgrade":
		return true
	}
	return false
}

// readDocument returns the objects of a document: none if it is empty, or a hook that is left out;
// more than one if it is a list.
func readDocument(text []byte) ([]json.RawMessage, error) {
	raw, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, err
	}
	if string(raw) == "null" {
		return nil, nil
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &object.Object); err != nil || object.GetKind() == "" || object.GetAPIVersion() == "" {
		return nil, errors.New("it is no object with apiVersion and kind")
	}
	if !object.IsList() {
		one, err := single(object, raw)
		if one == nil || err != nil {
			return nil, err
		}
		return []json.RawMessage{one}, nil
	}
	items, _, err := unstructured.NestedSlice(object.Object, "items")
	if err != nil {
		return nil, err
	}
	var all []json.RawMessage
	for _, item := range items {
		raw, err := json.Marshal(item)
		if err != nil {
			return nil, err
		}
		inner, err := readDocument(raw)
		if err != nil {
			return nil, err
		}
		all = append(all, inner...)
	}
	return all, nil
}

// single returns the object as it is applied, nil for a hook that is not. A Job of a hook runs
// again when it changes, as Helm would run it: it cannot be changed in place.
func single(object *unstructured.Unstructured, raw json.RawMessage) (json.RawMessage, error) {
	annotations := object.GetAnnotations()
	hooks, isHook := annotations[hookAnnotation]
	if !isHook {
		return raw, nil
	}
	runs := false
	for hook := range strings.SplitSeq(hooks, ",") {
		runs = runs || applied(hook)
	}
	if !runs {
		return nil, nil
	}
	if object.GetKind() != "Job" || annotations[placementv1beta1.ImmutableChangeAnnotation] != "" {
		return raw, nil
	}
	annotations[placementv1beta1.ImmutableChangeAnnotation] = placementv1beta1.ImmutableChangeRecreate
	object.SetAnnotations(annotations)
	return json.Marshal(object.Object)
}
