// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"fleetgate.io/fleetgate/pkg/tunnel"
)

func TestPeersOf_MarksThoseThatAcceptAgents(t *testing.T) {
	notReady := false
	pod := &corev1.ObjectReference{Kind: "Pod", UID: "both"}
	got := peersOf([]*discoveryv1.EndpointSlice{
		{AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"10.0.0.2"}, Conditions: discoveryv1.EndpointConditions{Ready: &notReady}},
			{Addresses: []string{"10.0.0.1"}},
			{},
		}},
		{AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}}},
		{AddressType: discoveryv1.AddressTypeIPv6, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"fd00::1"}}, {Addresses: []string{"fd00::3"}, TargetRef: pod}}},
		{AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.3"}, TargetRef: pod}}},
		{AddressType: discoveryv1.AddressTypeFQDN, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"gateway.example.com"}}}},
	}, 8092)
	if diff := cmp.Diff([]tunnel.Peer{{Address: "10.0.0.1:8092", Serving: true}, {Address: "10.0.0.2:8092"}, {Address: "10.0.0.3:8092", Serving: true}, {Address: "[fd00::1]:8092", Serving: true}}, got); diff != "" {
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
