// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Base is what has to be remembered of a manifest, so that ThreeWay knows at the next one
// what has left it. Of a Secret that is the names of its keys: values are not needed, and
// annotations are shown where values are hidden, as by kubectl describe.
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
