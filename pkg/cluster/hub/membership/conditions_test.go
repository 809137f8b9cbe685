// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

func TestDesiredStatus_TranslatesConditionsOfThePreviousVersion(t *testing.T) {
	previous := []metav1.Condition{{Type: clusterv1beta1.PreviousPlacementsRetained, Status: metav1.ConditionTrue, Reason: clusterv1beta1.PreviousHubRestored}}
	current := []metav1.Condition{{Type: clusterv1beta1.ConditionPlacementsRetained, Status: metav1.ConditionFalse, Reason: clusterv1beta1.ReasonNothingRetained}}
	unreachable := []metav1.Condition{{Type: clusterv1beta1.PreviousHubURLReachable, Status: metav1.ConditionFalse, Reason: clusterv1beta1.PreviousHubNotReached}}
	for name, tc := range map[string]struct {
		shown, reported []metav1.Condition
		want            map[string]string
	}{
		"reported by a previous agent": {nil, previous,
			map[string]string{clusterv1beta1.ConditionPlacementsRetained: clusterv1beta1.ReasonHubRestored}},
		"reported by a previous agent that cannot reach the hub's next URL": {unreachable, unreachable,
			map[string]string{clusterv1beta1.ConditionHubURLReachable: clusterv1beta1.ReasonHubURLUnreachable}},
		"shown by a previous gateway": {previous, current,
			map[string]string{clusterv1beta1.ConditionPlacementsRetained: clusterv1beta1.ReasonNothingRetained}},
	} {
		t.Run(name, func(t *testing.T) {
			mc := &clusterv1beta1.MemberCluster{Status: clusterv1beta1.MemberClusterStatus{Conditions: tc.shown}}
			got := map[string]string{}
			for _, c := range desiredStatus(mc, &clusterv1beta1.InternalMemberClusterStatus{Conditions: tc.reported}).Conditions {
				if c.Type != clusterv1beta1.ConditionJoined {
					got[c.Type] = c.Reason
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}
