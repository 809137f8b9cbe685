// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWhatIsHeldTogetherHasAnIDThatWasNotTold(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	made := 0
	h := holds{newID: func() string { made++; return fmt.Sprint(made) }}
	for _, tc := range []struct {
		of    string
		after time.Duration
		letGo []string
		want  string
	}{
		{of: "the first", want: "1"},
		{of: "one of the same restore", after: 10 * time.Second, want: "1"},
		{of: "one after that was let go", after: 20 * time.Second, letGo: []string{"1"}, want: "2"},
		{of: "one a while later", after: 2 * time.Minute, letGo: []string{"1"}, want: "3"},
		{of: "one after the clock was set back", after: -time.Hour, letGo: []string{"1"}, want: "4"},
	} {
		if got := h.idAt(at.Add(tc.after), membership{letGo: tc.letGo}); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.of, got, tc.want)
		}
	}
	if a, b := newHoldID(), newHoldID(); a == b || len(a) != 8 {
		t.Errorf("ids are %q and %q", a, b)
	}
}

func TestHoldsAreToldOnceAndTogether(t *testing.T) {
	var heard []Held
	h := holds{told: func(held Held) { heard = append(heard, held) }}
	back, other := hold{since: "s", id: "2"}, hold{since: "s", id: "1", another: true}
	h.set("b", hold{}, 0)
	h.set("b", back, 2)
	h.set("b", back, 2)
	h.set("a", other, 1)
	h.set("b", hold{}, 0)
	h.set("a", hold{}, 0)
	want := []Held{
		{Works: 1, Objects: 2, Example: "b", LetGo: "2", WentBack: true}, {Works: 2, Objects: 3, Example: "a", LetGo: "1,2", WentBack: true},
		{Works: 1, Objects: 1, Example: "a", LetGo: "1"}, {}}
	if diff := cmp.Diff(want, heard); diff != "" {
		t.Errorf("what was told (-want +got):\n%s", diff)
	}
}
