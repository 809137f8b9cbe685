// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

func resources(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

func container(cpu, memory string) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: resources(cpu, memory)}}
}

func sidecar(cpu, memory string) corev1.Container {
	c := container(cpu, memory)
	c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	return c
}

func texts(list corev1.ResourceList) map[string]string {
	out := map[string]string{}
	for name, quantity := range list {
		out[string(name)] = quantity.String()
	}
	return out
}

func TestRequestsOf(t *testing.T) {
	tests := map[string]struct {
		pod  corev1.PodSpec
		want map[string]string
	}{
		"containers add up": {
			corev1.PodSpec{Containers: []corev1.Container{container("1", "1Gi"), container("500m", "1Gi")}},
			map[string]string{"cpu": "1500m", "memory": "2Gi"},
		},
		"larger init containers count": {
			corev1.PodSpec{
				InitContainers: []corev1.Container{container("3", "100Mi")},
				Containers:     []corev1.Container{container("1", "1Gi")},
			},
			map[string]string{"cpu": "3", "memory": "1Gi"},
		},
		"a sidecar adds up": {
			corev1.PodSpec{
				InitContainers: []corev1.Container{sidecar("1", "1Gi"), container("2", "1Gi")},
				Containers:     []corev1.Container{container("1", "1Gi")},
			},
			map[string]string{"cpu": "3", "memory": "2Gi"},
		},
		"the runtime's overhead counts": {
			corev1.PodSpec{Containers: []corev1.Container{container("1", "1Gi")}, Overhead: resources("250m", "1Gi")},
			map[string]string{"cpu": "1250m", "memory": "2Gi"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, texts(requestsOf(&tc.pod))); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUsage_CountsPodsOnNodes(t *testing.T) {
	u := newUsage()
	for range 2 {
		u.addNode(&corev1.Node{Status: corev1.NodeStatus{
			Capacity:    corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("110")},
			Allocatable: resources("3", "6Gi"),
		}})
	}
	pod := func(node string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{
			Spec:   corev1.PodSpec{NodeName: node, Containers: []corev1.Container{container("1", "1Gi")}},
			Status: corev1.PodStatus{Phase: phase},
		}
	}
	u.addPod(pod("node-1", corev1.PodRunning))
	u.addPod(pod("node-1", corev1.PodPending))
	u.addPod(pod("node-1", corev1.PodSucceeded))
	u.addPod(pod("", corev1.PodPending))

	if u.nodes != 2 {
		t.Errorf("%d nodes", u.nodes)
	}
	for what, tc := range map[string]struct {
		got  corev1.ResourceList
		want map[string]string
	}{
		"capacity":    {u.capacity, map[string]string{"cpu": "8", "memory": "16Gi"}},
		"allocatable": {u.allocatable, map[string]string{"cpu": "6", "memory": "12Gi"}},
		"available":   {u.available(), map[string]string{"cpu": "4", "memory": "10Gi"}},
	} {
		if diff := cmp.Diff(tc.want, texts(tc.got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	for range 20 {
		u.addPod(pod("node-1", corev1.PodRunning))
	}
	if available := u.available(); available.Cpu().Sign() != 0 {
		t.Errorf("less than nothing is available: %v", available.Cpu())
	}
}

func TestReports(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	imc := &clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	tests := map[string]struct {
		status          clusterv1beta1.InternalMemberClusterStatus
		joined, healthy string
	}{
		"joined and healthy": {joinedReport(imc, facts{health: health{ok: true}, usage: newUsage()}, now), "True/InternalMemberClusterJoined", "True/InternalMemberClusterHealthy"},
		"joined, not ready":  {joinedReport(imc, facts{}, now), "True/InternalMemberClusterJoined", "False/InternalMemberClusterUnhealthy"},
		"failed to join":     {failedReport(imc, errors.New("x"), now), "Unknown/" + clusterv1beta1.ReasonInternalMemberClusterFailedToJoin, ""},
		"left":               {leftReport(imc, nil, now), "False/InternalMemberClusterLeft", ""},
		"failed to leave":    {leftReport(imc, errors.New("x"), now), "Unknown/" + clusterv1beta1.ReasonInternalMemberClusterFailedToLeave, ""},
	}
	say := func(agent *clusterv1beta1.AgentStatus, kind string) string {
		condition := meta.FindStatusCondition(agent.Conditions, kind)
		if condition == nil {
			return ""
		}
		if condition.ObservedGeneration != 3 {
			t.Errorf("%s is of generation %d", kind, condition.ObservedGeneration)
		}
		return string(condition.Status) + "/" + condition.Reason
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			agent := tc.status.AgentStatusOf(clusterv1beta1.MemberAgent)
			if agent == nil || !agent.LastReceivedHeartbeat.Time.Equal(now) {
				t.Fatalf("no heartbeat: %+v", agent)
			}
			if got := say(agent, clusterv1beta1.ConditionJoined); got != tc.joined {
				t.Errorf("Joined: got %s, want %s", got, tc.joined)
			}
			if got := say(agent, clusterv1beta1.ConditionHealthy); got != tc.healthy {
				t.Errorf("Healthy: got %s, want %s", got, tc.healthy)
			}
		})
	}
}

func TestJoinedReport_HasTheAgentVersionWhenTheMemberFails(t *testing.T) {
	imc := &clusterv1beta1.InternalMemberCluster{}
	for _, version := range []string{"v0.1.0", "v0.2.0"} {
		imc.Status = joinedReport(imc, facts{agentVersion: version}, time.Now())
		if got := imc.Status.Properties[clusterv1beta1.PropertyAgentVersion].Value; got != version {
			t.Errorf("the agent is said to be of %q, want %q", got, version)
		}
	}
}

func TestJoinedReport_HasTheImpersonationMode(t *testing.T) {
	imc := &clusterv1beta1.InternalMemberCluster{}
	for _, step := range []struct{ found, want string }{{"", ""}, {"plain", "plain"}, {"", "plain"}, {"constrained", "constrained"}} {
		before := imc.Status
		imc.Status = joinedReport(imc, facts{impersonation: step.found}, time.Now())
		if got := imc.Status.Properties[clusterv1beta1.PropertyImpersonation].Value; got != step.want {
			t.Errorf("found out %q, and %q is reported, want %q", step.found, got, step.want)
		}
		if step.found != "" && !isDue(&before, &imc.Status) {
			t.Errorf("%q is not reported at once", step.found)
		}
	}
}

func TestJoinedReport_KeepsTimesOfUnchangedConditions(t *testing.T) {
	first := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	imc := &clusterv1beta1.InternalMemberCluster{}
	imc.Status = joinedReport(imc, facts{health: health{ok: true}, usage: newUsage(), version: "v1"}, first)
	imc.Status = joinedReport(imc, facts{}, first.Add(time.Minute))
	agent := imc.Status.AgentStatusOf(clusterv1beta1.MemberAgent)
	joined := meta.FindStatusCondition(agent.Conditions, clusterv1beta1.ConditionJoined)
	if !joined.LastTransitionTime.Time.Equal(first) {
		t.Errorf("Joined changed at %v", joined.LastTransitionTime)
	}
	healthy := meta.FindStatusCondition(agent.Conditions, clusterv1beta1.ConditionHealthy)
	if !healthy.LastTransitionTime.Time.Equal(first.Add(time.Minute)) {
		t.Errorf("Healthy changed at %v", healthy.LastTransitionTime)
	}
	if got := imc.Status.Properties[clusterv1beta1.PropertyNodeCount].ObservationTime; !got.Time.Equal(first) {
		t.Errorf("figures that could not be found out are said to be of %v", got)
	}
}

func TestNextHeartbeat_StaysWithinFivePercent(t *testing.T) {
	tests := map[string]struct {
		seconds  int32
		fraction float64
		want     time.Duration
	}{
		"soonest":       {60, 0, 57 * time.Second},
		"in the middle": {60, 0.5, time.Minute},
		"latest":        {60, 1, 63 * time.Second},
		"no period":     {0, 0.5, time.Minute},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := nextHeartbeat(tc.seconds, tc.fraction); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestUsage_FreeIsOfNodesThatTakePods(t *testing.T) {
	u := newUsage()
	node := func(name string, ready corev1.ConditionStatus, cordoned bool) *corev1.Node {
		allocatable := resources("4", "8Gi")
		allocatable["example.com/device"] = resource.MustParse("2")
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Unschedulable: cordoned},
			Status: corev1.NodeStatus{Allocatable: allocatable, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
		}
	}
	u.addNode(node("a", corev1.ConditionTrue, false))
	u.addNode(node("b", corev1.ConditionTrue, false))
	u.addNode(node("cordoned", corev1.ConditionTrue, true))
	u.addNode(node("lost", corev1.ConditionUnknown, false))
	for _, on := range []string{"a", "cordoned", "lost"} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: on, Containers: []corev1.Container{container("1", "1Gi")}}}
		pod.Spec.Containers[0].Resources.Requests["example.com/device"] = resource.MustParse("1")
		u.addPod(pod)
	}
	if diff := cmp.Diff(map[string]string{"cpu": "7", "memory": "15Gi", "example.com/device": "3"}, texts(u.free)); diff != "" {
		t.Errorf("free (-want +got):\n%s", diff)
	}
}
