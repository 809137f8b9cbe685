// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// Reasons of the condition ReadyToJoin beside those of the API's reference.
const (
	// ReasonNameInvalid goes with False: a namespace cannot be named after the
	// member.
	ReasonNameInvalid = "MemberClusterNameInvalid"
	// ReasonNamespaceConflict goes with False: the member's namespace exists and is
	// another's, or is on its way out.
	ReasonNamespaceConflict = "NamespaceConflict"
	// ReasonIdentityInvalid goes with False: spec.identity is nobody to whom rights
	// can be given.
	ReasonIdentityInvalid = "IdentityInvalid"
)

// tunnelAmong is what an agent says of its tunnel among its own conditions, as those of
// the version before do. It is shown among the member's.
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

// passingAmong are the conditions of these types among others.
func passingAmong(conditions []metav1.Condition) []metav1.Condition {
	var found []metav1.Condition
	for _, condition := range conditions {
		if slices.Contains(passing(), condition.Type) {
			found = append(found, condition)
		}
	}
	return found
}
