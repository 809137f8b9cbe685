// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"maps"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// Equal compares two values of decoded JSON as JSON does: 1 equals 1.0. Two integers are not compared
// as floats, which would round large ones.
func Equal(a, b any) bool {
	switch x := a.(type) {
	case int64:
		if y, ok := b.(float64); ok {
			return float64(x) == y
		}
	case float64:
		if y, ok := b.(int64); ok {
			return x == float64(y)
		}
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, Equal)
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && maps.EqualFunc(x, y, Equal)
	}
	return apiequality.Semantic.DeepEqual(a, b)
}
