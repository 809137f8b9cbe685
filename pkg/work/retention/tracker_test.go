// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestBook_SharesAnUnreportedIDAmongNewMarks(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	made := 0
	tracker := NewTrackerWithIDs(nil, func() string { made++; return fmt.Sprint(made) })
	for _, tc := range []struct {
		of       string
		after    time.Duration
		released []string
		want     string
	}{
		{of: "the first", want: "1"},
		{of: "one of the same restore", after: 10 * time.Second, want: "1"},
		{of: "one after that was released", after: 20 * time.Second, released: []string{"1"}, want: "2"},
		{of: "one a while later", after: 2 * time.Minute, released: []string{"1"}, want: "3"},
		{of: "one after the clock was set back", after: -time.Hour, released: []string{"1"}, want: "4"},
	} {
		if got := tracker.New(at.Add(tc.after), tc.released).ID; got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.of, got, tc.want)
		}
	}
	if a, b := randomID(), randomID(); a == b || len(a) != 8 {
		t.Errorf("ids are %q and %q", a, b)
	}
}

func TestBook_ReportsEachChangeOnce(t *testing.T) {
	var heard []Summary
	tracker := NewTracker(func(sum Summary) { heard = append(heard, sum) })
	back, other := Mark{Since: "s", ID: "2"}, Mark{Since: "s", ID: "1", Another: true}
	tracker.Set(Works, "b", Mark{}, 0)
	tracker.Set(Works, "b", back, 2)
	tracker.Set(Works, "b", back, 2)
	tracker.Set(ServiceAccounts, "a", other, 1)
	tracker.Set(Works, "b", Mark{}, 0)
	tracker.Set(ServiceAccounts, "a", Mark{}, 0)
	want := []Summary{
		{Works: 1, Objects: 2, Kinds: "Works", Example: "b", IDs: "2", HubRestored: true},
		{Works: 2, Objects: 3, Kinds: "ManagedServiceAccounts and Works", Example: "a", IDs: "1,2", HubRestored: true},
		{Works: 1, Objects: 1, Kinds: "ManagedServiceAccounts", Example: "a", IDs: "1"}, {}}
	if diff := cmp.Diff(want, heard); diff != "" {
		t.Errorf("what was told (-want +got):\n%s", diff)
	}
}
