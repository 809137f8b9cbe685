// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package azurefleet

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	azurefleetv1alpha1 "fleetgate.io/fleetgate/pkg/apis/azurefleet/v1alpha1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// desiredStatus derives the status from the MemberCluster of the current group, nil if there is none.
func desiredStatus(shown *azurefleetv1alpha1.MemberCluster, mc *clusterv1beta1.MemberCluster) azurefleetv1alpha1.MemberClusterStatus {
	status := *shown.Status.DeepCopy()
	set := func(kind string, value metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: value, Reason: reason, Message: message, ObservedGeneration: shown.Generation,
		})
	}
	switch {
	case mc == nil:
		set(azurefleetv1alpha1.ConditionJoined, metav1.ConditionFalse, azurefleetv1alpha1.ReasonLeft, "the member has left; placed resources stay on it")
		set(azurefleetv1alpha1.ConditionSynced, metav1.ConditionTrue, azurefleetv1alpha1.ReasonReconcileSuccess, "")
		return status
	case !metav1.IsControlledBy(mc, shown):
		set(azurefleetv1alpha1.ConditionJoined, metav1.ConditionFalse, azurefleetv1alpha1.ReasonConflict, fmt.Sprintf(
			"MemberCluster %q of %s was not created for this one: delete one of the two", mc.Name, clusterv1beta1.GroupName))
		return status
	}
	meta.RemoveStatusCondition(&status.Conditions, azurefleetv1alpha1.ConditionSynced)
	status.Capacity, status.Allocatable = mc.Status.ResourceUsage.Capacity, mc.Status.ResourceUsage.Allocatable
	if isHeard(mc) {
		set(azurefleetv1alpha1.ConditionHeartbeatReceived, metav1.ConditionTrue, azurefleetv1alpha1.ReasonHeartbeatReceived, "")
	} else {
		set(azurefleetv1alpha1.ConditionHeartbeatReceived, metav1.ConditionUnknown, azurefleetv1alpha1.ReasonHeartbeatUnknown, "the member's agent sends no heartbeat")
	}
	if mc.IsJoined() {
		set(azurefleetv1alpha1.ConditionJoined, metav1.ConditionTrue, azurefleetv1alpha1.ReasonJoined, "")
	} else {
		set(azurefleetv1alpha1.ConditionJoined, metav1.ConditionUnknown, azurefleetv1alpha1.ReasonJoinUnknown, whyNotJoined(mc))
	}
	return status
}

// whyNotJoined is the current group's message.
func whyNotJoined(mc *clusterv1beta1.MemberCluster) string {
	for _, kind := range []string{clusterv1beta1.ConditionReadyToJoin, clusterv1beta1.ConditionJoined} {
		if condition := meta.FindStatusCondition(mc.Status.Conditions, kind); condition != nil && condition.Status != metav1.ConditionTrue {
			return condition.Message
		}
	}
	return "the member is being prepared"
}

// isHeard reports whether the member's agent has reported and is connected.
func isHeard(mc *clusterv1beta1.MemberCluster) bool {
	return mc.Status.AgentStatusOf(clusterv1beta1.MemberAgent) != nil &&
		mc.IsJoined()
}

// desiredInternalStatus derives the status from the agent's report.
func desiredInternalStatus(internal *azurefleetv1alpha1.InternalMemberCluster, mc *clusterv1beta1.MemberCluster) azurefleetv1alpha1.InternalMemberClusterStatus {
	status := *internal.Status.DeepCopy()
	status.Capacity, status.Allocatable = mc.Status.ResourceUsage.Capacity, mc.Status.ResourceUsage.Allocatable
	agent := mc.Status.AgentStatusOf(clusterv1beta1.MemberAgent)
	if agent == nil {
		return status
	}
	set := func(condition metav1.Condition) {
		condition.ObservedGeneration, condition.LastTransitionTime = internal.Generation, metav1.Time{}
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	heartbeat := metav1.Condition{
		Type: azurefleetv1alpha1.ConditionHeartbeatReceived, Status: metav1.ConditionTrue,
		Reason: azurefleetv1alpha1.ReasonHeartbeatReceived, Message: "internal member cluster heartbeat received",
	}
	if !isHeard(mc) {
		heartbeat.Status, heartbeat.Reason, heartbeat.Message = metav1.ConditionUnknown, azurefleetv1alpha1.ReasonHeartbeatUnknown, "the member's agent sends no heartbeat"
	}
	set(heartbeat)
	set(metav1.Condition{Type: azurefleetv1alpha1.ConditionSynced, Status: metav1.ConditionTrue, Reason: azurefleetv1alpha1.ReasonReconcileSuccess})
	for _, kind := range []string{clusterv1beta1.ConditionJoined, clusterv1beta1.ConditionHealthy} {
		if condition := meta.FindStatusCondition(agent.Conditions, kind); condition != nil {
			set(*condition)
		}
	}
	return status
}
