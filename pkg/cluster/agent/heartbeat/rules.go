// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// HubRules returns the rights that reports need in the member's namespace on the hub. Only the hub
// writes the spec of the InternalMemberCluster.
func HubRules(member string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{
			APIGroups: []string{clusterv1beta1.GroupName},
			Resources: []string{"internalmemberclusters"},
			Verbs:     []string{"get", "list", "watch"},
		},
		{
			APIGroups:     []string{clusterv1beta1.GroupName},
			Resources:     []string{"internalmemberclusters/status"},
			ResourceNames: []string{member},
			Verbs:         []string{"get", "update", "patch"},
		},
		{
			APIGroups:     []string{coordinationv1.GroupName},
			Resources:     []string{"leases"},
			ResourceNames: []string{clusterv1beta1.AgentLease},
			Verbs:         []string{"patch"},
		},
	}
}
