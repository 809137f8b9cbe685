// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import "testing"

func TestEqual(t *testing.T) {
	cases := map[string]struct {
		a, b any
		want bool
	}{
		"an integer and a float of the same value": {int64(1), 1.0, true},
		"a float and an integer of another value":  {1.5, int64(1), false},
		"integers that are one float":              {int64(9007199254740993), int64(9007199254740992), false},
		"numbers in maps and lists":                {map[string]any{"a": []any{int64(1), 2.0}}, map[string]any{"a": []any{1.0, int64(2)}}, true},
		"lists in another order":                   {[]any{"a", "b"}, []any{"b", "a"}, false},
		"a map with one more key":                  {map[string]any{"a": "1"}, map[string]any{"a": "1", "b": nil}, false},
		"a map and a list":                         {map[string]any{}, []any{}, false},
		"a text and a number":                      {"1", int64(1), false},
		"nothing":                                  {nil, nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Equal(tc.a, tc.b); got != tc.want {
				t.Errorf("Equal(%v, %v) = %v, want %v", tc.a, tc.b, got, tc.want)
			}
		})
	}
}
