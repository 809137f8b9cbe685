// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import rbacv1 "k8s.io/api/rbac/v1"

// MemberRules are the rights that the agent needs on the member, in each namespace with agents of
// add-ons.
func MemberRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "create", "patch", "delete"}}}
}
