// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

func workAt(uid types.UID, generation int64) *placementv1beta1.Work {
	return workNaming("w", "b", "1", func(work *placementv1beta1.Work) { work.UID, work.Generation = uid, generation })
}

func TestWhatIsSeenOfAWork(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	const early, late = "2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z"
	until := func(text string) time.Time {
		until, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return until
	}
	cases := map[string]struct {
		cached, live *placementv1beta1.Work
		// record is what its annotations say: of the Work, and since when something is held.
		record []string
		letGo  time.Time
		want   seen
		behind bool
	}{
		"one without a record":                              {cached: workAt("u", 3), want: seen{work: "u/3"}},
		"one whose record is of an agent of before":         {cached: workAt("u", 3), record: []string{"", ""}, want: seen{work: "u/3"}},
		"one as it was":                                     {cached: workAt("u", 3), record: []string{"u/3", ""}, want: seen{work: "u/3"}},
		"one that went on, which costs no write":            {cached: workAt("u", 5), record: []string{"u/3", ""}, want: seen{work: "u/3"}},
		"one that went back":                                {cached: workAt("u", 2), live: workAt("u", 2), record: []string{"u/3", ""}, want: seen{"u/2", at.Format(time.RFC3339)}},
		"one that a cache shows as it was":                  {cached: workAt("u", 2), live: workAt("u", 3), record: []string{"u/3", ""}, behind: true},
		"another in its place":                              {cached: workAt("v", 9), live: workAt("v", 9), record: []string{"u/3", ""}, want: seen{"v/9", at.Format(time.RFC3339)}},
		"another that a cache shows, and it is gone":        {cached: workAt("v", 9), live: workAt("u", 3), record: []string{"u/3", ""}, behind: true},
		"one of which something is held":                    {cached: workAt("u", 5), record: []string{"u/3", late}, want: seen{"u/3", late}},
		"one of which something was let go":                 {cached: workAt("u", 5), record: []string{"u/3", early}, letGo: until(late), want: seen{work: "u/3"}},
		"one that was let go before it was held":            {cached: workAt("u", 5), record: []string{"u/3", late}, letGo: until(early), want: seen{"u/3", late}},
		"one that went back again, after it was let go":     {cached: workAt("u", 1), live: workAt("u", 1), record: []string{"u/3", early}, letGo: until(late), want: seen{"u/1", at.Format(time.RFC3339)}},
		"one whose record says what nobody can understand":  {cached: workAt("u", 1), record: []string{"nonsense", ""}, want: seen{work: "nonsense"}},
		"one whose record holds since nobody can say when":  {cached: workAt("u", 3), record: []string{"u/3", "long ago"}, letGo: until(late), want: seen{"u/3", "long ago"}},
		"one whose record has no number for the generation": {cached: workAt("u", 1), record: []string{"u/x", ""}, want: seen{work: "u/x"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var r *Reconciler
			if tc.live != nil {
				r = reconcilerWith(t, tc.live)
			} else {
				r = reconcilerWith(t) // and whoever asks it fails
			}
			r.options.Clock = testingclock.NewFakePassiveClock(at)
			var record *placementv1beta1.AppliedWork
			if tc.record != nil {
				record = &placementv1beta1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
				for i, key := range []string{SeenAnnotation, HeldAnnotation} {
					if tc.record[i] != "" {
						record.Annotations[key] = tc.record[i]
					}
				}
			}
			got, err := r.see(t.Context(), tc.cached, membership{id: "m", letGo: tc.letGo})(record)
			if errors.Is(err, errBehind) != tc.behind || err != nil && !tc.behind {
				t.Fatalf("the error is %v", err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(seen{})); diff != "" {
				t.Errorf("what is seen (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHoldsAreToldOnceAndTogether(t *testing.T) {
	var heard []Held
	h := holds{told: func(held Held) { heard = append(heard, held) }}
	h.set("b", 0)
	h.set("b", 2)
	h.set("b", 2)
	h.set("a", 1)
	h.set("b", 0)
	h.set("a", 0)
	want := []Held{{Works: 1, Objects: 2, Example: "b"}, {Works: 2, Objects: 3, Example: "a"}, {Works: 1, Objects: 1, Example: "a"}, {}}
	if diff := cmp.Diff(want, heard); diff != "" {
		t.Errorf("what was told (-want +got):\n%s", diff)
	}
}
