// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
	tunnelv1alpha1 "fleetgate.io/fleetgate/pkg/apis/tunnel/v1alpha1"
)

func definitions() (all map[string]common.OpenAPIDefinition, refs map[string]bool) {
	refs = map[string]bool{}
	all = GetOpenAPIDefinitions(func(name string) spec.Ref {
		refs[name] = true
		return spec.MustCreateRef("#/definitions/" + name)
	})
	return all, refs
}

func TestGetOpenAPIDefinitions_HasEveryServedType(t *testing.T) {
	all, _ := definitions()
	for _, name := range []string{
		gatewayv1alpha1.ClusterGateway{}.OpenAPIModelName(),
		gatewayv1alpha1.ClusterGatewayList{}.OpenAPIModelName(),
		gatewayv1alpha1.ClusterGatewayProxyOptions{}.OpenAPIModelName(),
		tunnelv1alpha1.Tunnel{}.OpenAPIModelName(),
		tunnelv1alpha1.TunnelList{}.OpenAPIModelName(),
		tunnelv1alpha1.TunnelProxyOptions{}.OpenAPIModelName(),
		metav1.Status{}.OpenAPIModelName(),
		metav1.APIResourceList{}.OpenAPIModelName(),
		metav1.WatchEvent{}.OpenAPIModelName(),
	} {
		if _, ok := all[name]; !ok {
			t.Errorf("%s has no schema", name)
		}
	}
}

func TestGetOpenAPIDefinitions_HasEveryReferencedType(t *testing.T) {
	all, refs := definitions()
	for name := range refs {
		if _, ok := all[name]; !ok {
			t.Errorf("A schema refers to %s, which has no schema", name)
		}
	}
	for of, definition := range all {
		for _, dependency := range definition.Dependencies {
			if _, ok := all[dependency]; !ok {
				t.Errorf("%s depends on %s, which has no schema", of, dependency)
			}
		}
	}
}

func TestNoGatewayFieldCanHoldASecret(t *testing.T) {
	all, _ := definitions()
	for name, definition := range all {
		if !strings.HasPrefix(name, "dev.oam.core.cluster.") {
			continue
		}
		for field := range definition.Schema.Properties {
			switch strings.ToLower(field) {
			case "serviceaccounttoken", "token", "x509", "privatekey", "certificate":
				t.Errorf("%s has a field %q", name, field)
			}
		}
	}
}
