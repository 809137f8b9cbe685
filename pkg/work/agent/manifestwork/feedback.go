// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// maxRaw limits the bytes of a value that is reported as JSON; the hub accepts no more.
const maxRaw = 1024

// wellKnown returns the well-known status fields of a kind. Some kinds have none.
func wellKnown(kind schema.GroupVersionKind) []workv1.JSONPath {
	switch kind {
	case schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}:
		return []workv1.JSONPath{
			{Name: "ReadyReplicas", Path: ".status.readyReplicas"},
			{Name: "Replicas", Path: ".status.replicas"},
			{Name: "AvailableReplicas", Path: ".status.availableReplicas"},
		}
	case schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}:
		return []workv1.JSONPath{
			{Name: "NumberReady", Path: ".status.numberReady"},
			{Name: "DesiredNumberScheduled", Path: ".status.desiredNumberScheduled"},
			{Name: "NumberAvailable", Path: ".status.numberAvailable"},
		}
	case schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}:
		return []workv1.JSONPath{
			{Name: "JobComplete", Path: `.status.conditions[?(@.type=="Complete")].status`},
			{Name: "JobSucceeded", Path: ".status.succeeded"},
		}
	case schema.GroupVersionKind{Version: "v1", Kind: "Pod"}:
		return []workv1.JSONPath{
			{Name: "PodReady", Path: `.status.conditions[?(@.type=="Ready")].status`},
			{Name: "PodPhase", Path: ".status.phase"},
		}
	}
	return nil
}

// feedbackOf returns the values that rules select. Missing values are omitted; the error joins all
// failures. Data of a Secret is never reported. raw also reports lists and maps, as JSON.
func feedbackOf(object *unstructured.Unstructured, rules []workv1.FeedbackRule, raw bool) ([]workv1.FeedbackValue, error) {
	if manifest.IsSecret(object.GroupVersionKind().GroupKind()) {
		object = withoutSecrets(object)
	}
	var values []workv1.FeedbackValue
	var errs []error
	given := map[string]bool{}
	for _, rule := range rules {
		paths, err := pathsOf(rule, object.GroupVersionKind())
		if err != nil {
			errs = append(errs, err)
		}
		for _, path := range paths {
			value, err := valueAt(object, path, raw)
			if err != nil {
				errs = append(errs, err)
			}
			if value != nil && !given[path.Name] { // the hub rejects duplicate names
				given[path.Name] = true
				values = append(values, workv1.FeedbackValue{Name: path.Name, Value: *value})
			}
		}
	}
	return values, utilerrors.NewAggregate(errs)
}

func pathsOf(rule workv1.FeedbackRule, kind schema.GroupVersionKind) ([]workv1.JSONPath, error) {
	switch rule.Type {
	case workv1.FeedbackJSONPaths:
		return rule.JSONPaths, nil
	case workv1.FeedbackWellKnownStatus:
		if paths := wellKnown(kind); len(paths) > 0 {
			return paths, nil
		}
		return nil, fmt.Errorf("cannot find the wellknown statuses for resource with gvk %s", kind)
	}
	return nil, fmt.Errorf("feedback rules of type %q are not known to this agent", rule.Type)
}

// valueAt returns the value at a path; nil if there is none.
func valueAt(object *unstructured.Unstructured, path workv1.JSONPath, raw bool) (*workv1.FieldValue, error) {
	if path.Version != "" && path.Version != object.GroupVersionKind().Version {
		return nil, fmt.Errorf("version set in the path %s is not matched for the related resource", path.Name)
	}
	found, err := find(object, path)
	if found == nil || err != nil {
		return nil, err
	}
	switch value := found.(type) {
	case int64:
		return &workv1.FieldValue{Type: workv1.ValueInteger, Integer: &value}, nil
	case string:
		return &workv1.FieldValue{Type: workv1.ValueString, String: &value}, nil
	case bool:
		return &workv1.FieldValue{Type: workv1.ValueBoolean, Boolean: &value}, nil
	}
	if !raw {
		return nil, fmt.Errorf("the type %T of the value for %s is not found", found, path.Name)
	}
	text, err := rawText(found)
	if err != nil {
		return nil, fmt.Errorf("failed to parse the resource to json string for name %s: %w", path.Name, err)
	}
	if len(text) > maxRaw {
		return nil, fmt.Errorf("the length of returned json raw string for name %s is larger than the maximum length %d", path.Name, maxRaw)
	}
	value := string(text)
	return &workv1.FieldValue{Type: workv1.ValueJSONRaw, JSONRaw: &value}, nil
}

// rawText returns a value as JSON. A list of nested values could be thousands of times as large as
// the object, so encoding stops once the text is too long to be reported.
func rawText(found any) ([]byte, error) {
	list, ok := found.([]any)
	if !ok {
		return json.Marshal(found)
	}
	text := []byte("[")
	for i, value := range list {
		one, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			text = append(text, ',')
		}
		if text = append(text, one...); len(text) > maxRaw {
			break
		}
	}
	return append(text, ']'), nil
}

// find returns the value at a path, or a list of values if the path matches several.
func find(object *unstructured.Unstructured, path workv1.JSONPath) (found any, err error) {
	// The path comes from a user: a panic in the evaluation must not stop the agent.
	defer func() {
		if caught := recover(); caught != nil {
			found, err = nil, fmt.Errorf("failed to find value for %s with error: %v", path.Name, caught)
		}
	}()
	parsed, err := parsePath(path.Name, path.Path)
	if err != nil {
		return nil, fmt.Errorf("failed to parse json path %s of %s with error: %w", path.Path, path.Name, err)
	}
	results, err := parsed.FindResults(object.Object)
	if err != nil {
		return nil, fmt.Errorf("failed to find value for %s with error: %w", path.Name, err)
	}
	if len(results) == 0 || len(results[0]) == 0 {
		return nil, nil
	}
	if len(results) == 1 && len(results[0]) == 1 {
		return results[0][0].Interface(), nil
	}
	list := make([]any, 0, len(results[0]))
	for _, result := range results[0] {
		if !result.IsValid() || !result.CanInterface() {
			return nil, errors.New("failed to find value for " + path.Name + ": it has no form in JSON")
		}
		list = append(list, result.Interface())
	}
	return list, nil
}

// withoutSecrets returns a Secret without the fields that can contain its values.
func withoutSecrets(object *unstructured.Unstructured) *unstructured.Unstructured {
	bare := &unstructured.Unstructured{Object: make(map[string]any, len(object.Object))}
	for key, value := range object.Object {
		if key != "data" && key != "stringData" {
			bare.Object[key] = value
		}
	}
	if metadata, ok := bare.Object["metadata"].(map[string]any); ok {
		kept := make(map[string]any, len(metadata))
		for key, value := range metadata {
			if key != "annotations" && key != "managedFields" { // kubectl copies data into an annotation
				kept[key] = value
			}
		}
		bare.Object["metadata"] = kept
	}
	return bare
}
