// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sealing

import (
	"bytes"
	"testing"
)

func TestOnlyTheHolderOfAKeySigns(t *testing.T) {
	key, other := newKey(t), newKey(t)
	verification, err := key.VerificationKey()
	if err != nil {
		t.Fatal(err)
	}
	signature, err := key.Sign([]byte("move"))
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := other.Sign([]byte("move"))
	if err != nil {
		t.Fatal(err)
	}
	for what, tc := range map[string]struct {
		key, message, signature []byte
		want                    bool
	}{
		"its own":             {verification, []byte("move"), signature, true},
		"another message":     {verification, []byte("stay"), signature, false},
		"another's signature": {verification, []byte("move"), foreign, false},
		"half a signature":    {verification, []byte("move"), signature[:32], false},
		"none":                {verification, []byte("move"), nil, false},
		"no key":              {nil, []byte("move"), signature, false},
		"half a key":          {verification[:16], []byte("move"), signature, false},
	} {
		if got := Verify(tc.key, tc.message, tc.signature); got != tc.want {
			t.Errorf("%s: got %v", what, got)
		}
	}

	private, err := key.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseKey(private)
	if err != nil {
		t.Fatal(err)
	}
	same, err := again.VerificationKey()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(verification, same) {
		t.Error("A key that was stored signs as another one")
	}
}
