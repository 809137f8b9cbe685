// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
)

func TestIsDue(t *testing.T) {
	written := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	until := metav1.NewTime(written.Add(validity))
	scores := func(value int32) []clusterv1alpha1.AddOnPlacementScoreItem {
		return []clusterv1alpha1.AddOnPlacementScoreItem{{Name: CPU, Value: value}}
	}
	tests := map[string]struct {
		until  *metav1.Time
		scores []clusterv1alpha1.AddOnPlacementScoreItem
		after  time.Duration
		want   bool
	}{
		"nothing was written":            {nil, scores(10), 0, true},
		"nothing changed":                {&until, scores(10), validity/2 - time.Second, false},
		"half of the validity is over":   {&until, scores(10), validity / 2, true},
		"a small change":                 {&until, scores(11), time.Minute, false},
		"a change":                       {&until, scores(8), interval, true},
		"a change soon after the last":   {&until, scores(90), interval - time.Second, false},
		"another resource":               {&until, append(scores(10), clusterv1alpha1.AddOnPlacementScoreItem{Name: "x"}), interval, true},
		"a validity beyond that of ours": {&until, scores(10), -time.Hour, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			has := &clusterv1alpha1.AddOnPlacementScoreStatus{Scores: scores(10), ValidUntil: tc.until}
			if got := isDue(has, tc.scores, written.Add(tc.after)); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
