// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package addonscore

import (
	"testing"
	"time"

	"fleetgate.io/fleetgate/pkg/placement/framework"
)

func TestScore_CountsWhileValid(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	sheet := func(until time.Time) map[string]framework.ScoreSheet {
		return map[string]framework.ScoreSheet{"usage": {Values: map[string]int64{"cpu": -7}, Until: until}}
	}
	later := noon.Add(time.Second)
	for name, tc := range map[string]struct {
		scores map[string]framework.ScoreSheet
		want   int64
		until  time.Time
	}{
		"no sheet":              {},
		"another sheet":         {scores: map[string]framework.ScoreSheet{"other": {Values: map[string]int64{"cpu": 3}, Until: later}}},
		"valid indefinitely":    {scores: sheet(time.Time{}), want: -7},
		"valid for a while":     {scores: sheet(later), want: -7, until: later},
		"expired just now":      {scores: sheet(noon)},
		"expired some time ago": {scores: sheet(noon.Add(-time.Hour))},
		"not on the sheet":      {scores: map[string]framework.ScoreSheet{"usage": {Values: map[string]int64{"memory": 3}, Until: later}}, until: later},
	} {
		s, fleet, cluster := Scorer{Sheet: "usage", Value: "cpu"}, &framework.Fleet{Now: noon}, &framework.Cluster{Scores: tc.scores}
		if got := s.Score(nil, fleet, nil)(cluster); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
		if got := s.Until(nil, fleet, cluster); !got.Equal(tc.until) {
			t.Errorf("%s: until %v, want %v", name, got, tc.until)
		}
	}
	if got := (Scorer{Sheet: "usage", Value: "cpu"}).Name(); got != "AddOn/usage/cpu" {
		t.Errorf("Name() = %q", got)
	}
}
