// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sealing

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

var granted = Credential{
	Member:  "member-1",
	Token:   "header.claims.signature",
	Expires: time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC),
}

func newKey(t *testing.T) *Key {
	t.Helper()
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func seal(t *testing.T, key *Key, uid types.UID, clientID string) []byte {
	t.Helper()
	sealed, err := Seal(granted, key.PublicKey(), uid, clientID)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func TestTheStoredKeyOpensWhatWasSealedForIt(t *testing.T) {
	key := newKey(t)
	stored, err := key.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	read, err := ParseKey(stored)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read.PublicKey(), key.PublicKey()) {
		t.Fatal("the public key changed by storing the key")
	}
	got, err := read.Open(seal(t, key, "uid", "client"), "uid", "client")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&granted, got); diff != "" {
		t.Errorf("credential (-want +got):\n%s", diff)
	}
}

func TestOpenRefuses(t *testing.T) {
	key, other := newKey(t), newKey(t)
	sealed := seal(t, key, "uid", "client")
	tests := map[string]struct {
		key      *Key
		sealed   []byte
		uid      types.UID
		clientID string
	}{
		"another agent's key":             {other, sealed, "uid", "client"},
		"another request":                 {key, sealed, "uid-2", "client"},
		"another client":                  {key, sealed, "uid", "client-2"},
		"a border moved inside the names": {key, sealed, "uidc", "lient"},
		"nothing":                         {key, nil, "uid", "client"},
		"a length beyond the end":         {key, []byte{255, 255, 255, 255, 1}, "uid", "client"},
		"only a length":                   {key, make([]byte, 4), "uid", "client"},
		"too much":                        {key, make([]byte, maxSealedLength+1), "uid", "client"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := tc.key.Open(tc.sealed, tc.uid, tc.clientID); !errors.Is(err, ErrSealed) {
				t.Errorf("got %v, want ErrSealed", err)
			}
		})
	}
}

func TestOpenRefusesEveryChangedByte(t *testing.T) {
	key := newKey(t)
	raw := seal(t, key, "uid", "client")
	for i := range raw {
		raw[i] ^= 1
		if _, err := key.Open(raw, "uid", "client"); !errors.Is(err, ErrSealed) {
			t.Fatalf("byte %d changed: got %v, want ErrSealed", i, err)
		}
		raw[i] ^= 1
	}
}

func TestSealRefusesWhatIsNoKey(t *testing.T) {
	for name, text := range map[string][]byte{
		"empty":         nil,
		"short":         []byte("short"),
		"X25519 only":   make([]byte, 32),
		"far too large": make([]byte, 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Seal(granted, text, "uid", "client"); !errors.Is(err, ErrPublicKey) {
				t.Errorf("got %v, want ErrPublicKey", err)
			}
			if err := CheckPublicKey(text); !errors.Is(err, ErrPublicKey) {
				t.Errorf("CheckPublicKey: got %v, want ErrPublicKey", err)
			}
		})
	}
}

func TestFingerprintsTellKeysApart(t *testing.T) {
	key := newKey(t).PublicKey()
	if Fingerprint(key) != Fingerprint(bytes.Clone(key)) {
		t.Error("one key has two fingerprints")
	}
	if Fingerprint(key) == Fingerprint(newKey(t).PublicKey()) {
		t.Error("two keys have one fingerprint")
	}
}

func FuzzOpen(f *testing.F) {
	key, err := NewKey()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(make([]byte, 4))
	f.Fuzz(func(t *testing.T, sealed []byte) {
		if _, err := key.Open(sealed, "uid", "client"); !errors.Is(err, ErrSealed) {
			t.Fatalf("got %v, want ErrSealed", err)
		}
	})
}
