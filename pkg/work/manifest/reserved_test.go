// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestReservedNamespace(t *testing.T) {
	for name, want := range map[string]bool{
		"": false, "shop": false, "kube-system": false, "fleet-monitoring": false, "fleet-systems": false, "my-fleet-system": false,
		"open-cluster-management": false, "open-cluster-management-agent": false,
		"fleet-system": true, "fleet-system-second": true, "fleet-member-m1": true,
		"open-cluster-management-managed-serviceaccount": true, "open-cluster-management-managed-serviceaccount-second": true,
	} {
		if got := ReservedNamespace(name); got != want {
			t.Errorf("ReservedNamespace(%q) = %t, want %t", name, got, want)
		}
	}
}

func TestReserved(t *testing.T) {
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
			got := Reserved(object)
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("Reserved() = %q, want %q", got, tc.want)
			}
		})
	}
}
