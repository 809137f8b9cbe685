// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// availableSince is a binding that has been available for a duration; a negative duration means
// unavailable.
func availableSince(now time.Time, ago time.Duration) placementv1beta1.BindingObject {
	b := &placementv1beta1.ClusterResourceBinding{}
	status := metav1.ConditionTrue
	if ago < 0 {
		status = metav1.ConditionFalse
	}
	b.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionAvailable, Status: status, LastTransitionTime: metav1.NewTime(now.Add(-ago))}}
	return b
}

func TestLastHour_BarPerMinute(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	r := lastHour([]placementv1beta1.BindingObject{
		availableSince(now, 2*time.Hour), availableSince(now, 30*time.Minute), availableSince(now, -1), &placementv1beta1.ClusterResourceBinding{},
	}, now)
	if r.Text != "Available on 1 of 4 members for an hour or longer, on 2 now" {
		t.Error(r.Text)
	}
	if len(r.Bars) != 60 || r.Bars[0].Height != 15 || r.Bars[28].Height != 15 || r.Bars[29].Height != 30 || r.Bars[59] != (minute{X: 590, Y: 30, Height: 30}) {
		t.Errorf("%d bars: %v", len(r.Bars), r.Bars)
	}
	if none := lastHour(nil, now); len(none.Bars) != 0 || none.Text != "Available on 0 of 0 members for an hour or longer, on 0 now" {
		t.Error(none)
	}
}

func TestBarOfStatus_WidthsOfParts(t *testing.T) {
	of := func(name string, conditions ...metav1.Condition) placementv1beta1.PerClusterPlacementStatus {
		return placementv1beta1.PerClusterPlacementStatus{ClusterName: name, Conditions: conditions}
	}
	available := metav1.Condition{Type: placementv1beta1.ConditionAvailable, Status: metav1.ConditionTrue}
	refused := metav1.Condition{Type: placementv1beta1.ConditionApplied, Status: metav1.ConditionFalse}
	b := barOfStatus(&placementv1beta1.ClusterResourcePlacement{Status: placementv1beta1.PlacementStatus{PlacementStatuses: []placementv1beta1.PerClusterPlacementStatus{of("a", available), of("b", refused), of("c"), of("")}}})
	want := bar{Ready: 1, Pending: 1, Failing: 1, ReadyWidth: 334, PendingWidth: 333, FailingWidth: 333, Text: "1 ready, 1 pending, 1 failing"}
	if b != want || b.FailingAt()+b.FailingWidth != barWidth {
		t.Errorf("got %+v", b)
	}
}

func TestLatencies_KeptPerMember(t *testing.T) {
	var l latencies
	for i := range maxLatencies + 5 {
		l.add("m", time.Duration(i)*time.Millisecond)
	}
	all := l.add("m", 7*time.Millisecond)
	if got := latencyText(all); len(all) != maxLatencies || got != "7 ms (6 ms to 64 ms in the last 60 requests)" {
		t.Errorf("%d: %s", len(all), got)
	}
	if got := latencyText(l.add("n", time.Microsecond)); got != "1 ms" {
		t.Error(got)
	}
}

func TestPlainLines_KeepsOnlyLineFeeds(t *testing.T) {
	if got := plainLines("one\x1b[2J\ntwo\u202e three\n" + strings.Repeat("x", maxText+1)); got != "one [2J\ntwo three\n"+strings.Repeat("x", maxText-3)+"..." {
		t.Errorf("%q", got[:40])
	}
}
