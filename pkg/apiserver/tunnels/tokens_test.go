// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnels

import (
	"context"
	"encoding/base64"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestExpiryOf(t *testing.T) {
	jwt := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	}
	for name, test := range map[string]struct {
		token string
		want  time.Time
	}{
		"a token's own time":     {jwt(`{"exp": 1800000000, "sub": "x"}`), time.Unix(1_800_000_000, 0)},
		"none in the token":      {jwt(`{"sub": "x"}`), time.Time{}},
		"a time before all time": {jwt(`{"exp": -1}`), time.Time{}},
		"a text for a number":    {jwt(`{"exp": "soon"}`), time.Time{}},
		"not JSON":               {"e30.bm9uZQ.c2ln", time.Time{}},
		"not base64":             {"a.?.c", time.Time{}},
		"not a JWT":              {"opaque", time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := expiryOf(test.token); !got.Equal(test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestRemembering_ReviewsARepeatedTokenOnce(t *testing.T) {
	asked := map[string]int{}
	identify := Remembering(func(_ context.Context, token string) (Identity, bool, error) {
		asked[token]++
		if token == "broken" {
			return Identity{}, false, errors.New("the hub is unreachable")
		}
		return Identity{Name: "u", Groups: []string{"g"}}, token == "good", nil
	})
	for range 3 {
		id, ok, err := identify(t.Context(), "good")
		if err != nil || !ok || id.Name != "u" || len(id.Groups) != 1 {
			t.Errorf("a good token: %+v, %v, %v", id, ok, err)
		}
		if _, ok, err := identify(t.Context(), "bad"); ok || err != nil {
			t.Errorf("a bad token: %v, %v", ok, err)
		}
		if _, _, err := identify(t.Context(), "broken"); err == nil {
			t.Error("that nobody could tell was no error")
		}
	}
	// Failed reviews are not cached.
	if diff := cmp.Diff(map[string]int{"good": 1, "bad": 1, "broken": 3}, asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}
