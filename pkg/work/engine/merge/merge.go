// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package merge computes the patch of a client-side apply: what has to be sent
// so that an object has all that its manifest asks for, loses what the manifest
// asked for last time and no longer does, and keeps everything that others
// added. It is pure.
//
// Kinds that Kubernetes ships are patched the strategic way, which knows that
// containers are told apart by name; all others by JSON merge patch, which
// replaces lists whole. A list of the former whose items the merge key does not
// tell apart, as ports for TCP and UDP of one number, is replaced whole too.
package merge

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// Patch is a request body and how the API server has to read it. A patch
// without data changes nothing and need not be sent.
type Patch struct {
	Type types.PatchType
	Data []byte
}

// IsEmpty reports whether the object already is as it should be.
func (p Patch) IsEmpty() bool { return len(p.Data) == 0 }

// Merger makes patches. Its Known scheme decides which kinds have Go types with
// merge keys.
type Merger struct {
	Known *runtime.Scheme
}

// ThreeWay compares three JSON documents: original, the manifest as it was
// applied last (empty if never); modified, what is wanted now; current, what
// the API server has. A non-empty patch carries current's resourceVersion, so
// that it fails with a conflict if the object has changed since.
func (m Merger) ThreeWay(kind schema.GroupVersionKind, original, modified, current []byte) (Patch, error) {
	patch, err := m.diff(kind, original, modified, current)
	if err != nil {
		return Patch{}, fmt.Errorf("comparing the manifest with the object: %w", err)
	}
	if len(patch.Data) == 0 || bytes.Equal(bytes.TrimSpace(patch.Data), []byte("{}")) {
		return Patch{Type: patch.Type}, nil
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
		data, err := jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, current, unchanged...)
		return Patch{Type: types.MergePatchType, Data: data}, err
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
	if err := json.Unmarshal(patch, &fields); err != nil {
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
