// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package reserved

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWhy_OfNamespacesAndTokenSecrets(t *testing.T) {
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
		"a certificate request":                {object("certificates.k8s.io/v1", "CertificateSigningRequest", "", "a"), true},
		"one of cert-manager":                  {object("cert-manager.io/v1", "CertificateRequest", "web", "a"), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if reason := Why(tt.object, "cattle-fleet-system", "accounts", ""); (reason != "") != tt.reserved {
				t.Errorf("refused because %q, want a refusal: %v", reason, tt.reserved)
			}
		})
	}
}

func TestNamespace_OfReservedNames(t *testing.T) {
	for name, want := range map[string]bool{
		"": false, "shop": false, "kube-system": false, "fleet-monitoring": false, "fleet-systems": false, "my-fleet-system": false,
		"open-cluster-management": false, "open-cluster-management-agent": false,
		"fleet-system": true, "fleet-system-second": true, "fleet-member-m1": true,
		"open-cluster-management-managed-serviceaccount": true, "open-cluster-management-managed-serviceaccount-second": true,
	} {
		if got := Namespace(name); got != want {
			t.Errorf("Namespace(%q) = %t, want %t", name, got, want)
		}
	}
}

func TestWhy_OfReservedObjects(t *testing.T) {
	for name, tc := range map[string]struct{ object, want string }{
		"an ordinary object":         {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"shop"}}`, ""},
		"an ordinary Secret":         {`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","namespace":"shop"},"type":"Opaque"}`, ""},
		"a Namespace of that name":   {`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"fleet-system"}}`, "is a namespace in which"},
		"another kind of that name":  {`{"apiVersion":"example.org/v1","kind":"Namespace","metadata":{"name":"fleet-system"}}`, ""},
		"an object in the namespace": {`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"a","namespace":"open-cluster-management-managed-serviceaccount"}}`, "in which the fleet keeps"},
		"a token of an account":      {`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","namespace":"shop"},"type":"kubernetes.io/service-account-token"}`, "has type kubernetes.io/service-account-token"},
		"a token for joining":        {`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","namespace":"kube-system"},"type":"bootstrap.kubernetes.io/token"}`, "has type bootstrap.kubernetes.io/token"},
		"a type that is no text":     {`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","namespace":"shop"},"type":7}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			if err := object.UnmarshalJSON([]byte(tc.object)); err != nil {
				t.Fatal(err)
			}
			got := Why(object)
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("Why() = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestChecksWriter(t *testing.T) {
	for kind, want := range map[schema.GroupKind]bool{
		{Group: "placement.kubernetes-fleet.io", Kind: "ResourceEnvelope"}:              true,
		{Group: "work.open-cluster-management.io", Kind: "ManifestWorkReplicaSet"}:      true,
		{Group: "cluster.open-cluster-management.io", Kind: "ManagedClusterSetBinding"}: true,
		{Group: "authorization.openshift.io", Kind: "RoleBinding"}:                      true,
		{Group: "cluster.open-cluster-management.io", Kind: "ClusterClaim"}:             false,
		{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:                       false,
		{Kind: "ConfigMap"}: false,
	} {
		if got := ChecksWriter(kind); got != want {
			t.Errorf("ChecksWriter(%s) = %t", kind, got)
		}
	}
}
