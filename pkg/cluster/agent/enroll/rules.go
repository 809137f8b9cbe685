// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	rbacv1 "k8s.io/api/rbac/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// HubRules are the rights that renewing needs in the member's namespace on the hub:
// to request tokens of the member's own account, and of no other, and to read on the
// Secret to which they are bound how long they may live.
func HubRules(string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups:     []string{""},
		Resources:     []string{"serviceaccounts/token"},
		ResourceNames: []string{clusterv1beta1.AgentAccount},
		Verbs:         []string{"create"},
	}, {
		APIGroups:     []string{""},
		Resources:     []string{"secrets"},
		ResourceNames: []string{clusterv1beta1.AgentCredentialSecret},
		Verbs:         []string{"get"},
	}}
}
