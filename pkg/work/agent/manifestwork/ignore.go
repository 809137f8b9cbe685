// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"context"
	"crypto/md5" // the hash is no secret: it tells two manifests apart
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// longestPath limits the bytes of a path in any language.
const longestPath = 4 << 10

// leaving returns how to apply a manifest with ignored fields. Fields with OnSpokePresent are
// written only at creation. Fields with OnSpokeChange are written only if the manifest changes.
func leaving(ctx context.Context, raw []byte, fields []workv1.IgnoreField) (*engine.Leaving, error) {
	wanted := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &wanted.Object); err != nil {
		//lint:ignore nilerr The plan has refused the manifest.
		return nil, nil
	}
	wanted.SetUID("")
	manifest.DropUnsetTimes(wanted.Object)
	for _, field := range fields {
		on := wanted
		if field.Condition == workv1.IgnoreFieldsOnSpokeChange {
			on = wanted.DeepCopy() // only to validate the paths
		}
		if err := without(ctx, on, field); err != nil {
			return nil, err
		}
	}
	text, err := wanted.MarshalJSON()
	if err != nil {
		return nil, err
	}
	lean, err := manifest.Decode(text)
	if err != nil {
		return nil, err
	}
	return &engine.Leaving{Annotation: workv1.ConfigSpecHashAnnotation, Hash: specHash(wanted), Lean: lean}, nil
}

// specHash identifies the manifest that was applied last. OCM's agent computes the same hash, of
// the original manifest without ignored fields, UID and unset times. If one agent replaces the
// other, nothing is written.
func specHash(object *unstructured.Unstructured) string {
	sum := md5.Sum(fmt.Appendf(nil, "%v", object))
	return hex.EncodeToString(sum[:])
}

// without removes the named fields from an object. The error names an invalid path.
func without(ctx context.Context, object *unstructured.Unstructured, field workv1.IgnoreField) error {
	for _, path := range field.JSONPaths {
		if err := removeAtPath(object, path); err != nil {
			return fmt.Errorf("JSONPath error in '%s': %w", path, err)
		}
	}
	for _, pointer := range field.JSONPointers {
		if err := removeAtPointer(object, pointer); err != nil {
			return fmt.Errorf("JSON Pointer error in '%s': %w", pointer, err)
		}
	}
	for _, expression := range field.JQPathExpressions {
		if err := removeByJQ(ctx, object, expression); err != nil {
			return fmt.Errorf("JQ expression error in '%s': %w", expression, err)
		}
	}
	return nil
}

// removeAtPath removes the map key after the last dot of a JSONPath.
func removeAtPath(object *unstructured.Unstructured, path string) (err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = fmt.Errorf("%v", caught)
		}
	}()
	at := strings.LastIndex(path, ".")
	if at < 0 || strings.ContainsAny(path[at:], "[]()'\"*") {
		return errors.New("it must end with a dot and the name of a field")
	}
	parsed, err := parsePath("ignoreFields", path[:at])
	if err != nil {
		return err
	}
	parents := [][]any{{object.Object}}
	if at > 0 {
		results, err := parsed.FindResults(object.Object)
		if err != nil {
			return err
		}
		parents = parents[:0]
		for _, result := range results {
			var found []any
			for _, value := range result {
				if value.IsValid() && value.CanInterface() {
					found = append(found, value.Interface())
				}
			}
			parents = append(parents, found)
		}
	}
	for _, found := range parents {
		for _, parent := range found {
			if fields, ok := parent.(map[string]any); ok {
				delete(fields, path[at+1:])
			}
		}
	}
	return nil
}

// removeAtPointer removes the value at a JSON pointer, if it exists.
func removeAtPointer(object *unstructured.Unstructured, pointer string) error {
	if len(pointer) > longestPath {
		return fmt.Errorf("it has more than %d bytes", longestPath)
	}
	if !strings.HasPrefix(pointer, "/") {
		return errors.New("it must begin with a slash")
	}
	operation, err := json.Marshal([]map[string]string{{"op": "remove", "path": pointer}})
	if err != nil {
		return err
	}
	patch, err := jsonpatch.DecodePatch(operation)
	if err != nil {
		return err
	}
	before, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	options := jsonpatch.NewApplyOptions()
	options.AllowMissingPathOnRemove = true
	after, err := patch.ApplyWithOptions(before, options)
	if errors.Is(err, jsonpatch.ErrMissing) {
		return nil
	}
	if err != nil {
		return err
	}
	return replaceBy(object, after)
}

func replaceBy(object *unstructured.Unstructured, text []byte) error {
	fields := map[string]any{}
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	after := &unstructured.Unstructured{Object: fields}
	if after.GetKind() != object.GetKind() || after.GetAPIVersion() != object.GetAPIVersion() ||
		after.GetName() != object.GetName() || after.GetNamespace() != object.GetNamespace() {
		return errors.New("it would take the object's kind or name away")
	}
	object.Object = fields
	return nil
}
