// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Base is the part of a manifest that ThreeWay needs as original for the next one. For a Secret it
// has only the keys of the data. Values are not needed, and tools such as kubectl describe hide
// data but show annotations.
func Base(kind schema.GroupVersionKind, manifest []byte) []byte {
	if kind.Group != "" || kind.Kind != "Secret" {
		return manifest
	}
	var fields map[string]any
	if json.Unmarshal(manifest, &fields) != nil {
		return nil
	}
	for _, field := range []string{"data", "stringData"} {
		values, ok := fields[field].(map[string]any)
		if !ok {
			continue
		}
		for key := range values {
			values[key] = ""
		}
	}
	base, err := json.Marshal(fields)
	if err != nil {
		return nil
	}
	return base
}
