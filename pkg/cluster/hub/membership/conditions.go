// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// These reasons of the condition ReadyToJoin are not in the API's reference.
const (
	// ReasonNameInvalid is for False: the member's name is not valid for a namespace.
	ReasonNameInvalid = "MemberClusterNameInvalid"
	// ReasonNamespaceConflict is for False: the member's namespace belongs to another owner, or is
	// being deleted.
	ReasonNamespaceConflict = "NamespaceConflict"
	// ReasonIdentityInvalid is for False: rights cannot be granted to spec.identity.
	ReasonIdentityInvalid = "IdentityInvalid"
)

// tunnelAmong are the conditions about the tunnel among the agent's own conditions, where agents of the
// previous version report them. The hub moves them to the member's conditions.
func tunnelAmong(report *clusterv1beta1.InternalMemberClusterStatus) []metav1.Condition {
	agent := report.AgentStatusOf(clusterv1beta1.MemberAgent)
	if agent == nil {
		return nil
	}
	tunnel := meta.FindStatusCondition(agent.Conditions, clusterv1beta1.ConditionTunnelConnected)
	if tunnel == nil {
		return nil
	}
	return []metav1.Condition{*tunnel}
}

// passing are the types of conditions that are removed from a member when its agent no longer
// reports them.
func passing() []string {
	return []string{clusterv1beta1.ConditionNamespacesCollected, clusterv1beta1.ConditionHubURLReachable,
		clusterv1beta1.PreviousPlacementsRetained, clusterv1beta1.PreviousHubURLReachable}
}

// current translates a condition that an agent of the previous version reports.
// Remove after the next release.
func current(c metav1.Condition) metav1.Condition {
	switch c.Type {
	case clusterv1beta1.PreviousPlacementsRetained:
		c.Type = clusterv1beta1.ConditionPlacementsRetained
	case clusterv1beta1.PreviousHubURLReachable:
		c.Type = clusterv1beta1.ConditionHubURLReachable
	default:
		return c
	}
	switch c.Reason {
	case clusterv1beta1.PreviousHubRestored:
		c.Reason = clusterv1beta1.ReasonHubRestored
	case clusterv1beta1.PreviousWorkReplaced:
		c.Reason = clusterv1beta1.ReasonWorkReplaced
	case clusterv1beta1.PreviousNothingRetained:
		c.Reason = clusterv1beta1.ReasonNothingRetained
	case clusterv1beta1.PreviousHubReached:
		c.Reason = clusterv1beta1.ReasonHubURLReachable
	case clusterv1beta1.PreviousHubNotReached:
		c.Reason = clusterv1beta1.ReasonHubURLUnreachable
	}
	return c
}

// passingAmong are the conditions of these types.
func passingAmong(conditions []metav1.Condition) []metav1.Condition {
	var found []metav1.Condition
	for _, condition := range conditions {
		if slices.Contains(passing(), condition.Type) {
			found = append(found, condition)
		}
	}
	return found
}
