// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import "testing"

func TestMissingRule(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"in a namespace": {
			`deployments.apps "web" is forbidden: User "agent" cannot patch resource "deployments" in API group "apps" in the namespace "ns"`,
			`The agent cannot patch deployments.apps in namespace "ns" of the member: its role lacks the rule {apiGroups: ["apps"], resources: ["deployments"], verbs: [patch]}`},
		"in the cluster": {
			`namespaces is forbidden: User "agent" cannot create resource "namespaces" in API group "" at the cluster scope`,
			`The agent cannot create namespaces on the member: its role lacks the rule {apiGroups: [""], resources: ["namespaces"], verbs: [create]}`},
		"a subresource": {
			`User "agent" cannot get resource "pods/log" in API group "" in the namespace "ns": RBAC: role not found`,
			`The agent cannot get pods/log in namespace "ns" of the member: its role lacks the rule {apiGroups: [""], resources: ["pods/log"], verbs: [get]}`},
		"a quota": {`pods "a" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1`, ""},
		"an escalation": {
			`roles.rbac.authorization.k8s.io "a" is forbidden: user "agent" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently retained: {APIGroups:[""], Resources:["secrets"], Verbs:["get"]}`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := missingRule(tc.text); got != tc.want {
				t.Errorf("it says\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}
