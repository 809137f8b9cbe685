// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

func TestStandstills_ReportsStuckRolloutOnce(t *testing.T) {
	began := time.Unix(1_700_000_000, 0)
	waiting := placementv1beta1.PerClusterPlacementStatus{ClusterName: "b",
		Conditions: []metav1.Condition{{Type: rolloutStarted.kind, Status: metav1.ConditionFalse, Reason: rolloutStarted.failed}}}
	broken := func(member string, since time.Time) placementv1beta1.PerClusterPlacementStatus {
		return placementv1beta1.PerClusterPlacementStatus{ClusterName: member, Conditions: []metav1.Condition{
			{Type: rolloutStarted.kind, Status: metav1.ConditionTrue},
			{Type: available.kind, Status: metav1.ConditionFalse, Message: "not yet", LastTransitionTime: metav1.NewTime(since)},
		}}
	}
	placement := placementOf(nil)
	statuses := func(all ...placementv1beta1.PerClusterPlacementStatus) { placement.Status.PlacementStatuses = all }
	key := types.NamespacedName{Name: placement.Name}
	var s standstills
	check := func(now time.Time, reported bool, again time.Duration) {
		t.Helper()
		event, in := s.check(key, placement, now)
		if (event != nil) != reported || in != again {
			t.Errorf("after %s: %v, again after %s", now.Sub(began), event, in)
		}
		if event != nil && (event.reason != "PlacementRolloutStuck" || !strings.HasSuffix(event.message, `: on member "a", not yet`)) {
			t.Errorf("event = %v", event)
		}
	}

	statuses(broken("a", began))
	check(began.Add(time.Hour), false, 0) // No member waits for it.
	statuses(broken("c", began.Add(time.Hour)), broken("a", began), waiting)
	check(began.Add(time.Minute), false, 4*time.Minute)
	check(began.Add(5*time.Minute), true, 0)
	check(began.Add(6*time.Minute), false, 0)
	statuses(broken("a", began.Add(10*time.Minute)), waiting) // It was ready in between.
	check(began.Add(11*time.Minute), false, 4*time.Minute)
	check(began.Add(15*time.Minute), true, 0)
	placement.Spec.Strategy.Type = placementv1beta1.ExternalStrategy
	check(began.Add(time.Hour), false, 0)
}
