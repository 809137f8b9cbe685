// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// desiredStatus derives the status from the member's report. The hub's own conditions stay, and so does
// the status of an agent that is not reported.
func desiredStatus(mc *clusterv1beta1.MemberCluster, report *clusterv1beta1.InternalMemberClusterStatus) clusterv1beta1.MemberClusterStatus {
	status := *mc.Status.DeepCopy()
	if agents := desiredAgentStatus(report.AgentStatus, mc.Generation); len(agents) > 0 {
		status.AgentStatus = agents
	}
	status.ResourceUsage = desiredUsage(report.ResourceUsage)
	status.Properties = withInfrastructure(desiredProperties(report.Properties), mc)
	status.Namespaces = desiredNamespaces(report.Namespaces)
	reported := append(desiredConditions(report.Conditions, mc.Generation), desiredConditions(tunnelAmong(report), mc.Generation)...)
	for _, condition := range reported {
		known := meta.FindStatusCondition(status.Conditions, condition.Type) != nil
		if isHubCondition(condition.Type) || !known && len(status.Conditions) >= maxConditions {
			continue
		}
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	for _, kind := range passing() {
		if meta.FindStatusCondition(reported, kind) == nil {
			meta.RemoveStatusCondition(&status.Conditions, kind)
		}
	}
	joined := joinedCondition(status.AgentStatus)
	joined.ObservedGeneration = mc.Generation
	meta.SetStatusCondition(&status.Conditions, joined)
	return status
}

func isHubCondition(kind string) bool {
	return kind == clusterv1beta1.ConditionReadyToJoin || kind == clusterv1beta1.ConditionJoined || kind == clusterv1beta1.ConditionAgentOutdated
}

// joinedCondition summarizes the expected agents; there is one, the member's.
func joinedCondition(agents []clusterv1beta1.AgentStatus) metav1.Condition {
	condition := metav1.Condition{Type: clusterv1beta1.ConditionJoined}
	status := clusterv1beta1.MemberClusterStatus{AgentStatus: agents}
	condition.Status = joinedOf(status.AgentStatusOf(clusterv1beta1.MemberAgent))
	switch condition.Status {
	case metav1.ConditionTrue:
		condition.Reason = clusterv1beta1.ReasonMemberClusterJoined
		condition.Message = "the member's agent has joined"
	case metav1.ConditionFalse:
		condition.Reason = clusterv1beta1.ReasonMemberClusterLeft
		condition.Message = "the member's agent has left"
	default:
		condition.Status = metav1.ConditionUnknown
		condition.Reason = clusterv1beta1.ReasonMemberClusterJoinStateUnknown
		condition.Message = "the member's agent has not reported whether it joined: if this lasts, see its log"
	}
	return condition
}

func joinedOf(agent *clusterv1beta1.AgentStatus) metav1.ConditionStatus {
	if agent == nil {
		return metav1.ConditionUnknown
	}
	return joinedStatus(agent.Conditions)
}

func joinedStatus(conditions []metav1.Condition) metav1.ConditionStatus {
	joined := meta.FindStatusCondition(conditions, clusterv1beta1.ConditionJoined)
	if joined == nil {
		return metav1.ConditionUnknown
	}
	return joined.Status
}

func desiredAgentStatus(reported []clusterv1beta1.AgentStatus, generation int64) []clusterv1beta1.AgentStatus {
	var agents []clusterv1beta1.AgentStatus
	for _, agent := range reported[:min(len(reported), maxAgents)] {
		conditions := desiredConditions(agent.Conditions, generation)
		meta.RemoveStatusCondition(&conditions, clusterv1beta1.ConditionTunnelConnected)
		agents = append(agents, clusterv1beta1.AgentStatus{
			Type: agent.Type, Conditions: conditions, LastReceivedHeartbeat: agent.LastReceivedHeartbeat,
		})
	}
	return agents
}

func desiredConditions(reported []metav1.Condition, generation int64) []metav1.Condition {
	var conditions []metav1.Condition
	for _, condition := range reported[:min(len(reported), maxConditions)] {
		condition = current(condition)
		condition.ObservedGeneration = generation
		condition.Message = untrusted.Truncate(condition.Message, maxMessageLength)
		conditions = append(conditions, condition)
	}
	return conditions
}

func desiredUsage(reported clusterv1beta1.ResourceUsage) clusterv1beta1.ResourceUsage {
	return clusterv1beta1.ResourceUsage{
		Capacity:        bounded(reported.Capacity, maxResources),
		Allocatable:     bounded(reported.Allocatable, maxResources),
		Available:       bounded(reported.Available, maxResources),
		ObservationTime: reported.ObservationTime,
	}
}

// desiredNamespaces keeps valid namespace names and the names of their owners.
func desiredNamespaces(reported map[string]string) map[string]string {
	namespaces := maps.Clone(reported)
	maps.DeleteFunc(namespaces, func(name, owner string) bool {
		return len(name) > validation.DNS1123LabelMaxLength || len(owner) > validation.DNS1123SubdomainMaxLength
	})
	return bounded(namespaces, maxNamespaces)
}

// desiredProperties keeps properties by name, up to the limits of number and size.
func desiredProperties(reported map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue) map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue {
	properties := maps.Clone(reported)
	delete(properties, clusterv1beta1.PropertyRetained)
	count, length := 0, 0
	for _, name := range slices.SortedFunc(maps.Keys(properties), builtInFirst) {
		size := len(name) + len(reported[name].Value)
		if len(reported[name].Value) > maxPropertyValueLength || count == maxProperties || length+size > maxPropertiesLength {
			delete(properties, name)
			continue
		}
		count, length = count+1, length+size
	}
	return properties
}

// builtInFirst sorts names with a domain before those that a member's users choose, because placements
// rely on the former.
func builtInFirst(a, b clusterv1beta1.PropertyName) int {
	qualified := func(name clusterv1beta1.PropertyName) int {
		if strings.Contains(string(name), "/") {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(qualified(a), qualified(b)), cmp.Compare(a, b))
}

func bounded[M ~map[K]V, K ~string, V any](m M, limit int) M {
	if len(m) <= limit {
		return m
	}
	first := make(M, limit)
	for _, name := range slices.Sorted(maps.Keys(m))[:limit] {
		first[name] = m[name]
	}
	return first
}
