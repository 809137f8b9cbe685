// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	configv1alpha1 "fleetgate.io/fleetgate/pkg/apis/config/v1alpha1"
	"fleetgate.io/fleetgate/test/support/env"
)

// Which way the members' tunnels go.
const (
	// TunnelNative is through the hub's API server: the gateway has no port for agents.
	TunnelNative = "native"
	// TunnelPort speaks the same protocol; the gateway has a port of its own for agents.
	TunnelPort = "port"
	// TunnelData is TunnelPort with data connections.
	TunnelData = "data"
	// TunnelKonnectivity has the agents speak the protocol of Konnectivity, straight to
	// that port.
	TunnelKonnectivity = "konnectivity"
)

func (f *Fleet) hasAgentsPort() bool {
	return slices.Contains([]string{TunnelPort, TunnelData, TunnelKonnectivity}, f.Tunnel)
}

func (f *Fleet) gatewayTunnelArgs() ([]string, error) {
	if !f.hasAgentsPort() {
		return nil, nil
	}
	args := []string{
		"--agents-address=" + f.AgentsAddress(),
		fmt.Sprintf("--agents-port=%d", f.tunnelPort),
	}
	fields := map[string]string{
		TunnelData: "tunnels: {dataConnections: true}", TunnelKonnectivity: "tunnels: {konnectivity: {agents: true}}",
	}[f.Tunnel]
	if fields == "" {
		return args, nil
	}
	config, err := env.ConfigFlag(f.Dir, configv1alpha1.GatewayKind, fields)
	return append(args, config), err
}

func (f *Fleet) agentTunnelArgs() ([]string, error) {
	fields := map[string]string{
		TunnelData: "tunnel: {dataConnections: true}",
		TunnelKonnectivity: fmt.Sprintf("tunnel: {protocol: %s, server: %q, serverName: localhost, caFile: %q}",
			TunnelKonnectivity, f.AgentsAddress(), f.tunnelCAFile()),
	}[f.Tunnel]
	if fields == "" {
		return nil, nil
	}
	config, err := env.ConfigFlag(f.Dir, configv1alpha1.AgentKind, fields)
	return []string{config}, err
}

// AgentsAddress is where agents come in at the gateway's own port.
func (f *Fleet) AgentsAddress() string { return onPort(f.front(), f.tunnelPort) }

// TunnelCA is the CA, PEM, by which the gateway's own ports are verified as localhost.
// Agents that speak Konnectivity need it: a fleet of others does not have it.
func (f *Fleet) TunnelCA() ([]byte, error) { return os.ReadFile(f.tunnelCAFile()) }

func (f *Fleet) tunnelCAFile() string { return filepath.Join(f.Dir, "tunnel-ca.pem") }

// fetchTunnelCA stores what verifies the gateway's own port, for the agents: the CA
// by which the hub's API server verifies the gateway.
func (f *Fleet) fetchTunnelCA(ctx context.Context) error {
	if f.Tunnel != TunnelKonnectivity {
		return nil
	}
	return waitFor(ctx, "the CA of the gateway", registrationTimeout, func(ctx context.Context) (bool, error) {
		encoded, err := f.Kubectl(ctx, f.HubKubeconfig(), "", "get", "apiservice", "v1alpha1.tunnel.fleetgate.io", "--output=jsonpath={.spec.caBundle}")
		if err != nil || encoded == "" {
			return false, err
		}
		ca, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return false, err
		}
		return true, os.WriteFile(f.tunnelCAFile(), ca, 0o600)
	})
}
