// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package nearest

import (
	"slices"
	"strings"
	"testing"
)

func TestNames_MostSimilarFirst(t *testing.T) {
	names := []string{"member-1", "member-2", "edge-berlin", "edge-bern", "lab"}
	for asked, want := range map[string][]string{
		"membre-1":  {"member-1"},
		"edge-bern": {"edge-bern", "edge-berlin"},
		"berlin":    {"edge-berlin"},
		"lba":       {"lab"},
		"nothing":   nil,
	} {
		if got := Names(asked, names); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", asked, got, want)
		}
	}
}

func TestNotFound_NamesKindAndRemedy(t *testing.T) {
	for want, err := range map[string]error{
		`no member "membr": did you mean member?`:    NotFound("member", "membr", []string{"member"}, "x"),
		`list existing ones with kubectl get things`: NotFound("member", "zzzzzz", []string{"member"}, "kubectl get things"),
		`the hub has no members`:                     NotFound("member", "zzzzzz", nil, "x"),
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}

func FuzzDistance(f *testing.F) {
	f.Add("member-1", "membre-1")
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a) > 200 || len(b) > 200 {
			t.Skip("longer than any name")
		}
		d := distance(a, b)
		if d != distance(b, a) || (d == 0) != (a == b) || d > max(len(a), len(b)) {
			t.Errorf("distance(%q, %q) = %d, the other way %d", a, b, d, distance(b, a))
		}
	})
}
