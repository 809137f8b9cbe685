// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
)

func TestAddressesOfReplicas(t *testing.T) {
	notReady := false
	got := addressesOf([]*discoveryv1.EndpointSlice{
		{AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"10.0.0.2"}, Conditions: discoveryv1.EndpointConditions{Ready: &notReady}},
			{Addresses: []string{"10.0.0.1"}},
			{},
		}},
		{AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}}},
		{AddressType: discoveryv1.AddressTypeIPv6, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"fd00::1"}}}},
		{AddressType: discoveryv1.AddressTypeFQDN, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"gateway.example.com"}}}},
	}, 8092)
	if diff := cmp.Diff([]string{"10.0.0.1:8092", "10.0.0.2:8092", "[fd00::1]:8092"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMemberOfPath(t *testing.T) {
	for path, want := range map[string]string{
		"/apis/tunnel.fleetgate.io/v1alpha1/tunnels/one/proxy":     "one",
		"/apis/tunnel.fleetgate.io/v1alpha1/tunnels/one/proxy/":    "",
		"/apis/tunnel.fleetgate.io/v1alpha1/tunnels//proxy":        "",
		"/apis/tunnel.fleetgate.io/v1alpha1/tunnels/one":           "",
		"/apis/tunnel.fleetgate.io/v1alpha1/tunnels/one/two/proxy": "",
		"/tunnels/one/proxy": "",
		"/apis/tunnel.fleetgate.io/v1alpha1/tunnels/one/proxy?x=two": "",
	} {
		if got, ok := memberOfPath(path); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %q, %v; want %q", path, got, ok, want)
		}
	}
}
