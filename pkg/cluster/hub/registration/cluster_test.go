// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
)

func TestDesiredClusterStatus_LastSeenAdvancesInSteps(t *testing.T) {
	start := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	cluster := &registrationv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Name: "edge", Annotations: map[string]string{AnnotationMember: "edge", AnnotationMemberUID: "uid"},
	}}
	mc := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge", UID: "uid"}}

	cluster.Status = desiredClusterStatus(cluster, mc, start)
	if cluster.Status.Display.State != registrationv1alpha1.ClusterStateWaitCheckIn {
		t.Errorf("state before the first report: %q", cluster.Status.Display.State)
	}
	mc.Status = clusterv1beta1.MemberClusterStatus{
		Conditions: []metav1.Condition{{Type: clusterv1beta1.ConditionJoined, Status: metav1.ConditionTrue}},
		AgentStatus: []clusterv1beta1.AgentStatus{{
			Type:                  clusterv1beta1.MemberAgent,
			Conditions:            []metav1.Condition{{Type: clusterv1beta1.ConditionHealthy, Status: metav1.ConditionTrue}},
			LastReceivedHeartbeat: metav1.NewTime(start),
		}},
	}
	cluster.Status = desiredClusterStatus(cluster, mc, start)
	if cluster.Status.Display.State != "" || cluster.Status.Conditions[0].Status != corev1.ConditionTrue {
		t.Fatalf("not ready after the first report: %+v", cluster.Status)
	}

	seen := cluster.DeepCopy()
	mc.Status.AgentStatus[0].LastReceivedHeartbeat = metav1.NewTime(start.Add(lastSeenStep - time.Second))
	if diff := cmp.Diff(seen.Status, desiredClusterStatus(seen, mc, start.Add(time.Hour))); diff != "" {
		t.Errorf("heartbeat within the step changed the status (-want +got):\n%s", diff)
	}
	mc.Status.AgentStatus[0].LastReceivedHeartbeat = metav1.NewTime(start.Add(lastSeenStep))
	if got := desiredClusterStatus(seen, mc, start).Agent.LastSeen; !got.Equal(&mc.Status.AgentStatus[0].LastReceivedHeartbeat) {
		t.Errorf("lastSeen did not advance: %v", got)
	}
	mc.Status.Conditions[0].Status = metav1.ConditionUnknown
	mc.Status.AgentStatus[0].LastReceivedHeartbeat = metav1.NewTime(start.Add(time.Minute))
	if got := desiredClusterStatus(seen, mc, start).Agent.LastSeen; !got.Equal(&mc.Status.AgentStatus[0].LastReceivedHeartbeat) {
		t.Errorf("lastSeen of a disconnected member = %v", got)
	}
	const silent = "no heartbeat of the agent since 2026-08-01T12:01:00Z: see the condition Joined of MemberCluster edge"
	if got := desiredReady(seen, mc); got.Reason != reasonNotJoined || got.Message != silent {
		t.Errorf("disconnected agent: %s: %s", got.Reason, got.Message)
	}
}

func TestIsExpected(t *testing.T) {
	claimed := &registrationv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AnnotationKey: "sha256:x"}}}
	silent, reported := &clusterv1beta1.MemberCluster{}, &clusterv1beta1.MemberCluster{}
	reported.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent}}
	for name, tc := range map[string]struct {
		cluster *registrationv1alpha1.Cluster
		mc      *clusterv1beta1.MemberCluster
		want    bool
	}{
		"no request":                {&registrationv1alpha1.Cluster{}, nil, false},
		"registered, no member yet": {claimed, nil, true},
		"member created":            {claimed, silent, true},
		"agent has reported":        {claimed, reported, false},
		"member without a request":  {&registrationv1alpha1.Cluster{}, silent, true},
	} {
		if got := isExpected(tc.cluster, tc.mc); got != tc.want {
			t.Errorf("%s: isExpected = %t, want %t", name, got, tc.want)
		}
	}
}
