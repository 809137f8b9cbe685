// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hash

import "testing"

func TestOf_IsHexadecimalSHA256(t *testing.T) {
	const want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // from FIPS 180-2
	if got := Of("abc"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Of([]byte("abc")); got != want {
		t.Errorf("bytes: got %q, want %q", got, want)
	}
}

func TestJSON_HashesEncoding(t *testing.T) {
	got, err := JSON(map[string]int{"b": 2, "a": 1})
	if want := Of(`{"a":1,"b":2}`); err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if got, err := JSON(func() {}); err == nil {
		t.Errorf("got %q for a value without JSON", got)
	}
}
