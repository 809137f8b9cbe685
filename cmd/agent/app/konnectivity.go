// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/konnectivity"
)

// konnectivity serves the same targets with the Konnectivity protocol, directly to a server's own
// port.
func (a *agent) konnectivity(hub kubernetes.Interface, egress *tunnel.Egress, member, apiServer string,
	targets map[string]tunnel.Target) (*konnectivity.Connector, error) {
	allow, err := konnectivity.ParseAllow(a.Tunnel.Allow)
	if err != nil {
		return nil, err
	}
	config, err := a.tunnelTLS()
	if err != nil {
		return nil, err
	}
	connector := &konnectivity.Connector{
		Member: member, Address: a.Tunnel.Server, TLS: config, ID: string(uuid.NewUUID()),
		DialContext: egress.DialContext, DrainTime: tunnelDrain,
		Targets: targets, APIServer: apiServerNames(member, apiServer), Allow: allow, Metrics: a.konnectivityMetrics,
		OnStateChange: a.tunnelStatus.newest(),
	}
	if a.Tunnel.CertFile == "" {
		connector.Token = func(ctx context.Context) (string, error) { return portToken(ctx, hub, member) }
	}
	return connector, nil
}

// apiServerNames are the addresses under which an upstream Konnectivity server dials the member's
// API server.
func apiServerNames(member, apiServer string) []string {
	return []string{
		apiServer, net.JoinHostPort(member, "443"),
		"kubernetes.default:443", "kubernetes.default.svc:443", "kubernetes.default.svc.cluster.local:443",
	}
}

// tunnelTLS verifies the server. It reads the agent's own certificate for each connection, so that
// a rotation needs no restart.
func (a *agent) tunnelTLS() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: a.Tunnel.ServerName}
	if a.Tunnel.CAFile != "" {
		text, err := os.ReadFile(a.Tunnel.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading tunnel.caFile: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("reading tunnel.caFile: %s holds no certificate", a.Tunnel.CAFile)
		}
	}
	if a.Tunnel.CertFile != "" {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(a.Tunnel.CertFile, a.Tunnel.KeyFile)
			return &pair, err
		}
	}
	return config, nil
}
