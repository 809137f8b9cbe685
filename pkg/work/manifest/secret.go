// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/base64"
)

// FoldStringData writes the stringData of a Secret as its data, as the API server does when it
// stores one. What compares two manifests, or a manifest with an object, would not see otherwise
// that a key has left. Values that are no strings stay where they are: the API server refuses them.
func FoldStringData(secret map[string]any) {
	given, has := secret["stringData"]
	if !has {
		return
	}
	texts, ok := given.(map[string]any)
	if !ok {
		if given == nil {
			delete(secret, "stringData")
		}
		return
	}
	encoded := map[string]any{}
	for key, value := range texts {
		text, ok := value.(string)
		if !ok {
			return
		}
		encoded[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	data, ok := secret["data"].(map[string]any)
	if !ok && secret["data"] != nil {
		return
	}
	delete(secret, "stringData")
	if len(encoded) == 0 {
		return
	}
	for key, value := range data {
		if _, given := encoded[key]; !given {
			encoded[key] = value
		}
	}
	secret["data"] = encoded
}
