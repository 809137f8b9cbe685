// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package merge computes the patch of a client-side apply: the object gets all fields of its
// manifest, loses fields that left the manifest, and keeps fields that others added. It has no side
// effects.
//
// Built-in kinds use a strategic merge patch, which merges containers by name. All others use a
// JSON merge patch, which replaces lists except finalizers, or a JSON patch to set a null. A list of a
// built-in kind is also replaced if its merge key is not unique, such as ports for TCP and UDP with one
// number.
package merge

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Patch is a request body and its type. A patch without data changes nothing and must not be sent.
type Patch struct {
	Type types.PatchType
	Data []byte
}

// IsEmpty reports whether the object is up to date.
func (p Patch) IsEmpty() bool { return len(p.Data) == 0 }

// Merger creates patches. Kinds in the Known scheme have Go types with merge keys.
type Merger struct {
	Known *runtime.Scheme
}

// ThreeWay merges three JSON documents: original is the last applied manifest (empty if there is
// none), modified the desired object, current the object in the API server. A non-empty patch
// contains current's resourceVersion, so that it fails with a conflict if the object has changed.
func (m Merger) ThreeWay(kind schema.GroupVersionKind, original, modified, current []byte) (Patch, error) {
	patch, err := m.diff(kind, original, modified, current)
	if err != nil {
		return Patch{}, fmt.Errorf("comparing the manifest with the object: %w", err)
	}
	if len(patch.Data) == 0 || bytes.Equal(bytes.TrimSpace(patch.Data), []byte("{}")) {
		return Patch{Type: patch.Type}, nil
	}
	if patch.Type == types.JSONPatchType {
		return patch, nil // It has the version already.
	}
	patch.Data, err = pin(patch.Data, current)
	if err != nil {
		return Patch{}, err
	}
	return patch, nil
}

func (m Merger) diff(kind schema.GroupVersionKind, original, modified, current []byte) (Patch, error) {
	unchanged := []mergepatch.PreconditionFunc{
		mergepatch.RequireKeyUnchanged("apiVersion"),
		mergepatch.RequireKeyUnchanged("kind"),
		mergepatch.RequireMetadataKeyUnchanged("name"),
	}
	if !m.Known.Recognizes(kind) {
		return mergePatch(original, modified, current, unchanged)
	}
	object, err := m.Known.New(kind)
	if err != nil {
		return Patch{}, err
	}
	keys, err := strategicpatch.NewPatchMetaFromStruct(object)
	if err != nil {
		return Patch{}, err
	}
	if patch, is, err := ambiguous(keys, original, modified, current, unchanged); is || err != nil {
		return patch, err
	}
	data, err := strategicpatch.CreateThreeWayMergePatch(original, modified, current, keys, true, unchanged...)
	return Patch{Type: types.StrategicMergePatchType, Data: data}, err
}

// pin adds the resourceVersion of current to patch.
func pin(patch, current []byte) ([]byte, error) {
	var live struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(current, &live); err != nil {
		return nil, fmt.Errorf("reading the object's resourceVersion: %w", err)
	}
	fields := map[string]any{}
	if err := utiljson.Unmarshal(patch, &fields); err != nil { // Numbers must not be rounded.
		return nil, fmt.Errorf("reading the patch: %w", err)
	}
	metadata, ok := fields["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		fields["metadata"] = metadata
	}
	metadata["resourceVersion"] = live.Metadata.ResourceVersion
	return json.Marshal(fields)
}
