// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// health is what the member's API server answered to its readiness probe.
type health struct {
	ok bool
	// message is a sentence for people.
	message string
}

// facts are what a report says beside the agent's own state.
type facts struct {
	health  health
	version string
	// usage is nil if it could not be found out: then the former figures stay.
	usage *usage
}

// joinedReport is the status of a member that has joined. Conditions that do not change
// keep their times.
func joinedReport(imc *clusterv1beta1.InternalMemberCluster, f facts, now time.Time) clusterv1beta1.InternalMemberClusterStatus {
	status := *imc.Status.DeepCopy()
	agent := agentOf(&status)
	agent.LastReceivedHeartbeat = metav1.NewTime(now)
	setCondition(agent, imc.Generation, joined(), now)
	setCondition(agent, imc.Generation, healthy(f.health), now)
	observe(&status, f, now)
	return status
}

// leftReport says that the agent has left, or that it could not (then err is why).
func leftReport(imc *clusterv1beta1.InternalMemberCluster, err error, now time.Time) clusterv1beta1.InternalMemberClusterStatus {
	status := *imc.Status.DeepCopy()
	agent := agentOf(&status)
	agent.LastReceivedHeartbeat = metav1.NewTime(now)
	setCondition(agent, imc.Generation, left(err), now)
	return status
}

// failedReport says that the agent could not begin its work.
func failedReport(imc *clusterv1beta1.InternalMemberCluster, err error, now time.Time) clusterv1beta1.InternalMemberClusterStatus {
	status := *imc.Status.DeepCopy()
	agent := agentOf(&status)
	agent.LastReceivedHeartbeat = metav1.NewTime(now)
	setCondition(agent, imc.Generation, metav1.Condition{
		Type:    clusterv1beta1.ConditionJoined,
		Status:  metav1.ConditionUnknown,
		Reason:  clusterv1beta1.ReasonInternalMemberClusterFailedToJoin,
		Message: "the agent cannot begin its work: " + err.Error(),
	}, now)
	return status
}

func agentOf(status *clusterv1beta1.InternalMemberClusterStatus) *clusterv1beta1.AgentStatus {
	if agent := status.AgentStatusOf(clusterv1beta1.MemberAgent); agent != nil {
		return agent
	}
	status.AgentStatus = append(status.AgentStatus, clusterv1beta1.AgentStatus{Type: clusterv1beta1.MemberAgent})
	return &status.AgentStatus[len(status.AgentStatus)-1]
}

func setCondition(agent *clusterv1beta1.AgentStatus, generation int64, condition metav1.Condition, now time.Time) {
	condition.ObservedGeneration = generation
	if old := meta.FindStatusCondition(agent.Conditions, condition.Type); old == nil || old.Status != condition.Status {
		condition.LastTransitionTime = metav1.NewTime(now)
	}
	meta.SetStatusCondition(&agent.Conditions, condition)
}

func joined() metav1.Condition {
	return metav1.Condition{
		Type:    clusterv1beta1.ConditionJoined,
		Status:  metav1.ConditionTrue,
		Reason:  clusterv1beta1.ReasonInternalMemberClusterJoined,
		Message: "the agent has joined",
	}
}

func left(err error) metav1.Condition {
	if err != nil {
		return metav1.Condition{
			Type:    clusterv1beta1.ConditionJoined,
			Status:  metav1.ConditionUnknown,
			Reason:  clusterv1beta1.ReasonInternalMemberClusterFailedToLeave,
			Message: "the agent cannot end its work: " + err.Error(),
		}
	}
	return metav1.Condition{
		Type:    clusterv1beta1.ConditionJoined,
		Status:  metav1.ConditionFalse,
		Reason:  clusterv1beta1.ReasonInternalMemberClusterLeft,
		Message: "the agent has left; what was placed on the member stays there",
	}
}

func healthy(h health) metav1.Condition {
	condition := metav1.Condition{
		Type:    clusterv1beta1.ConditionHealthy,
		Status:  metav1.ConditionTrue,
		Reason:  clusterv1beta1.ReasonInternalMemberClusterHealthy,
		Message: h.message,
	}
	if !h.ok {
		condition.Status = metav1.ConditionFalse
		condition.Reason = clusterv1beta1.ReasonInternalMemberClusterUnhealthy
	}
	return condition
}

// observe writes the properties and figures that were found out.
func observe(status *clusterv1beta1.InternalMemberClusterStatus, f facts, now time.Time) {
	if status.Properties == nil {
		status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{}
	}
	at := metav1.NewTime(now)
	if f.version != "" {
		status.Properties[clusterv1beta1.PropertyKubernetesVersion] = clusterv1beta1.PropertyValue{Value: f.version, ObservationTime: at}
	}
	if f.usage == nil {
		return
	}
	status.Properties[clusterv1beta1.PropertyNodeCount] = clusterv1beta1.PropertyValue{
		Value: strconv.Itoa(f.usage.nodes), ObservationTime: at,
	}
	status.ResourceUsage = clusterv1beta1.ResourceUsage{
		Capacity:        f.usage.capacity,
		Allocatable:     f.usage.allocatable,
		Available:       f.usage.available(),
		ObservationTime: at,
	}
}

// reportedResources are those that a placement can choose members by.
func reportedResources() []corev1.ResourceName {
	return []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
}
