// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/base64"
)

// FoldStringData moves the stringData of a Secret to data, as the API server does. Otherwise a
// comparison of two manifests would not detect a removed key. Values that are no strings stay,
// because the API server rejects them.
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
