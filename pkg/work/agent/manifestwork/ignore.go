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

// longestPath is in bytes, of a path of any language.
const longestPath = 4 << 10

// leaving is how a manifest is applied of which fields are left to others: those of
// OnSpokePresent are only written when the object is made, those of OnSpokeChange only when
// the manifest has changed otherwise, or they have.
func leaving(ctx context.Context, raw []byte, fields []workv1.IgnoreField) (*engine.Leaving, error) {
	wanted := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &wanted.Object); err != nil {
		//lint:ignore nilerr The plan has refused it.
		return nil, nil
	}
	wanted.SetUID("")
	manifest.DropUnsetTimes(wanted.Object)
	for _, field := range fields {
		on := wanted
		if field.Condition == workv1.IgnoreFieldsOnSpokeChange {
			on = wanted.DeepCopy() // only to see whether the paths are right
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

// specHash is by what an object says which manifest was applied. Open Cluster Management's
// agent makes it the same way, of the manifest as it was written but for what it leaves to
// others, a UID and times that are not set: nothing is written when one takes over from the
// other.
func specHash(object *unstructured.Unstructured) string {
	sum := md5.Sum(fmt.Appendf(nil, "%v", object))
	return hex.EncodeToString(sum[:])
}

// without takes the named fields off an object. It says which path is wrong.
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

// removeAtPath removes a key of maps that a JSONPath leads to: what is after the last dot.
func removeAtPath(object *unstructured.Unstructured, path string) (err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = fmt.Errorf("%v", caught)
		}
	}()
	at := strings.LastIndex(path, ".")
	if at < 0 || strings.ContainsAny(path[at:], "[]()'\"*") {
		return errors.New("it has to end with a dot and the name of a field")
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

// removeAtPointer removes what a JSON pointer leads to, if it is there.
func removeAtPointer(object *unstructured.Unstructured, pointer string) error {
	if len(pointer) > longestPath {
		return fmt.Errorf("it has more than %d bytes", longestPath)
	}
	if !strings.HasPrefix(pointer, "/") {
		return errors.New("it has to begin with a slash")
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
