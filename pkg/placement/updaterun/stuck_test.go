// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package updaterun

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

func TestBeginsToStick_ReportsEachMemberOnce(t *testing.T) {
	progressing := func(reason, message string) *placementv1beta1.UpdateRunStatus {
		return &placementv1beta1.UpdateRunStatus{Conditions: []metav1.Condition{
			{Type: placementv1beta1.ConditionUpdateRunProgressing, Reason: reason, Message: message}}}
	}
	well, sticks := progressing(placementv1beta1.ReasonUpdateRunProgressing, "continues"), progressing(placementv1beta1.ReasonUpdateRunStuck, "waits for a")
	others := progressing(placementv1beta1.ReasonUpdateRunStuck, "waits for a, b")
	for name, tc := range map[string]struct {
		before, after *placementv1beta1.UpdateRunStatus
		want          string
	}{
		"in progress":                 {&placementv1beta1.UpdateRunStatus{}, well, ""},
		"becomes stuck":               {well, sticks, "waits for a"},
		"already reported":            {sticks, sticks, ""},
		"stuck for other members":     {sticks, others, "waits for a, b"},
		"continues after being stuck": {sticks, well, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := beginsToStick(tc.before, tc.after); got != tc.want {
				t.Errorf("message = %q, want %q", got, tc.want)
			}
		})
	}
}
