// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package azurefleet

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	azurefleetv1alpha1 "fleetgate.io/fleetgate/pkg/apis/azurefleet/v1alpha1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

func said(conditions []metav1.Condition) map[string]string {
	all := map[string]string{}
	for _, c := range conditions {
		all[c.Type] = string(c.Status) + "/" + c.Reason
	}
	return all
}

func member(owner string, joined metav1.ConditionStatus, agents ...clusterv1beta1.AgentStatus) *clusterv1beta1.MemberCluster {
	mc := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{
		Name: "edge", OwnerReferences: []metav1.OwnerReference{{UID: "uid", Controller: ptr.To(owner == "ours")}},
	}}
	mc.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionJoined, Status: joined, Message: "present words"}}
	mc.Status.AgentStatus = agents
	return mc
}

func TestDesiredStatus_ConditionsOfFirstGroup(t *testing.T) {
	agent := clusterv1beta1.AgentStatus{Type: clusterv1beta1.MemberAgent, Conditions: []metav1.Condition{
		{Type: "Joined", Status: metav1.ConditionTrue, Reason: "InternalMemberClusterJoined"},
		{Type: "Healthy", Status: metav1.ConditionTrue, Reason: "InternalMemberClusterHealthy"},
	}}
	tests := map[string]struct {
		mc   *clusterv1beta1.MemberCluster
		want map[string]string
	}{
		"joined":       {member("ours", metav1.ConditionTrue, agent), map[string]string{"HeartbeatReceived": "True/InternalMemberClusterHeartbeatReceived", "Joined": "True/MemberClusterJoined"}},
		"silent":       {member("ours", metav1.ConditionUnknown, agent), map[string]string{"HeartbeatReceived": "Unknown/InternalMemberClusterHeartbeatUnknown", "Joined": "Unknown/MemberClusterJoinStateUnknown"}},
		"not yet":      {member("ours", metav1.ConditionUnknown), map[string]string{"HeartbeatReceived": "Unknown/InternalMemberClusterHeartbeatUnknown", "Joined": "Unknown/MemberClusterJoinStateUnknown"}},
		"left":         {nil, map[string]string{"Joined": "False/MemberClusterLeft", "Synced": "True/ReconcileSuccess"}},
		"another's MC": {member("theirs", metav1.ConditionTrue, agent), map[string]string{"Joined": "False/MemberClusterConflict"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			shown := &azurefleetv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge", UID: "uid", Generation: 2}}
			status := desiredStatus(shown, tc.mc)
			if diff := cmp.Diff(tc.want, said(status.Conditions)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			for _, c := range status.Conditions {
				if c.ObservedGeneration != 2 {
					t.Errorf("generation of %s = %d", c.Type, c.ObservedGeneration)
				}
				if c.Status == metav1.ConditionUnknown && !strings.Contains(c.Message, "present words") && c.Type == "Joined" {
					t.Errorf("message of %s = %q", c.Type, c.Message)
				}
			}
		})
	}
	internal := desiredInternalStatus(&azurefleetv1alpha1.InternalMemberCluster{}, member("ours", metav1.ConditionTrue, agent))
	want := map[string]string{
		"HeartbeatReceived": "True/InternalMemberClusterHeartbeatReceived", "Synced": "True/ReconcileSuccess",
		"Joined": "True/InternalMemberClusterJoined", "Healthy": "True/InternalMemberClusterHealthy",
	}
	if diff := cmp.Diff(want, said(internal.Conditions)); diff != "" {
		t.Errorf("internal conditions (-want +got):\n%s", diff)
	}
}
