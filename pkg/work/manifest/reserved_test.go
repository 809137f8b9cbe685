// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWhatIsReservedOnMembers(t *testing.T) {
	object := func(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion(apiVersion)
		o.SetKind(kind)
		o.SetNamespace(namespace)
		o.SetName(name)
		return o
	}
	secret := func(of string) *unstructured.Unstructured {
		o := object("v1", "Secret", "web", "a")
		o.Object["type"] = of
		return o
	}
	const accounts = "open-cluster-management-managed-serviceaccount"
	tests := map[string]struct {
		object   *unstructured.Unstructured
		reserved bool
	}{
		"an ordinary object":                   {object("v1", "ConfigMap", "web", "a"), false},
		"one of the whole cluster":             {object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", "a"), false},
		"an ordinary namespace":                {object("v1", "Namespace", "", "web"), false},
		"a namespace named nearly so":          {object("v1", "Namespace", "", "fleet-systems"), false},
		"a Pod beside the gateway's account":   {object("v1", "Pod", accounts, "a"), true},
		"a ServiceAccount there":               {object("v1", "ServiceAccount", accounts, "cluster-gateway"), true},
		"a RoleBinding in the agent's own":     {object("rbac.authorization.k8s.io/v1", "RoleBinding", "fleet-system", "a"), true},
		"that namespace itself":                {object("v1", "Namespace", "", "fleet-system"), true},
		"the accounts' namespace itself":       {object("v1", "Namespace", "", accounts), true},
		"a further hub's agent":                {object("v1", "Secret", "fleet-system-two", "agent-key"), true},
		"a further hub's accounts":             {object("v1", "Pod", accounts+"-two", "a"), true},
		"a member's namespace of a hub":        {object("v1", "Secret", "fleet-member-a", "agent-credential"), true},
		"an agent that was given another name": {object("v1", "ConfigMap", "cattle-fleet-system", "a"), true},
		"accounts that were given another":     {object("v1", "Pod", "accounts", "a"), true},
		"another group's Namespace":            {object("example.com/v1", "Namespace", "", "fleet-system"), false},
		"a Secret of another type":             {secret("Opaque"), false},
		"a Secret without a type":              {secret(""), false},
		"a token Secret":                       {secret("kubernetes.io/service-account-token"), true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if reason := Reserved(tt.object, "cattle-fleet-system", "accounts", ""); (reason != "") != tt.reserved {
				t.Errorf("refused because %q, want a refusal: %v", reason, tt.reserved)
			}
		})
	}
}
