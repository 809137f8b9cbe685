// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"
	"time"
)

func TestPatience_LimitsCorrectionsOfAnEndlessContest(t *testing.T) {
	var p backoff
	start := early.Time
	var at []time.Duration
	for now := start; now.Sub(start) < time.Hour; now = now.Add(100 * time.Millisecond) {
		if p.wait(now) <= 0 {
			p = p.corrected(now)
			at = append(at, now.Sub(start))
		}
	}
	inFirstMinute := 0
	for _, when := range at {
		if when < time.Minute {
			inFirstMinute++
		}
	}
	if inFirstMinute > 10 {
		t.Errorf("%d corrections in the first minute: %v", inFirstMinute, at[:inFirstMinute])
	}
	if last := at[len(at)-1] - at[len(at)-2]; last != longestWait {
		t.Errorf("the last wait is %s, want %s", last, longestWait)
	}
	if p.endsIn(start.Add(time.Hour)) <= 0 {
		t.Error("the object is not contested any more")
	}
}

func TestPatience_DelaysCorrectionsOfAContestedObject(t *testing.T) {
	seconds := func(n int) time.Time { return early.Add(time.Duration(n) * time.Second) }
	cases := map[string]struct {
		corrected []int
		now       int
		contested bool
		wait      time.Duration
	}{
		"never corrected":                         {nil, 0, false, 0},
		"corrected twice":                         {[]int{0, 1}, 1, false, 0},
		"corrected three times in a minute":       {[]int{0, 30, 59}, 59, true, time.Second},
		"corrected three times, slowly":           {[]int{0, 30, 61}, 61, false, 0},
		"corrected four times":                    {[]int{0, 1, 2, 3}, 4, true, time.Second},
		"quiet for nearly ten minutes":            {[]int{0, 1, 2}, 601, true, 0},
		"quiet for ten minutes":                   {[]int{0, 1, 2}, 602, false, 0},
		"corrected again after ten quiet minutes": {[]int{0, 1, 2, 700}, 700, false, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var p backoff
			for _, at := range tc.corrected {
				p = p.corrected(seconds(at))
			}
			if got := p.endsIn(seconds(tc.now)) > 0; got != tc.contested {
				t.Errorf("contested is %t", got)
			}
			if got := max(p.wait(seconds(tc.now)), 0); got != tc.wait {
				t.Errorf("the next correction waits %s, want %s", got, tc.wait)
			}
		})
	}
}
