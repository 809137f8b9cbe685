// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestFamily_RefusesReservedNamespaces: neither into the usual namespaces nor into those that
// an agent was given instead.
func TestFamily_RefusesReservedNamespaces(t *testing.T) {
	works := family{&Reconciler{options: Options{ReservedNamespaces: []string{"accounts"}}}}
	for namespace, refused := range map[string]bool{"shop": false, "fleet-system": true, "open-cluster-management-managed-serviceaccount": true, "accounts": true} {
		pod := &unstructured.Unstructured{}
		pod.SetAPIVersion("v1")
		pod.SetKind("Pod")
		pod.SetName("a")
		pod.SetNamespace(namespace)
		if why := works.Reserved(pod); (why != "") != refused {
			t.Errorf("a Pod in namespace %q is refused because %q, want a refusal: %t", namespace, why, refused)
		}
	}
}
