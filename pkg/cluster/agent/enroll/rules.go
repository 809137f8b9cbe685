// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	rbacv1 "k8s.io/api/rbac/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// HubRules returns the rights that renewals need in the member's namespace on the hub: to request
// tokens of the member's own account only, and to read the maximum lifetime from the Secret that
// tokens are bound to.
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
