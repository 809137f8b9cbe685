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
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/konnectivity"
)

const (
	// tunnelAudience is whom the token is for with which this agent opens a tunnel: a
	// server that is not the gateway can do nothing with it.
	tunnelAudience = "tunnel.fleetgate.io"
	// tunnelTokenLifetime is how long such a token lives. The gateway asks for another
	// before it ends.
	tunnelTokenLifetime = time.Hour
)

// konnectivity serves the same targets by the protocol of Konnectivity, straight to
// a server's own port.
func (a *agent) konnectivity(hub *rest.Config, member, apiServer string, targets map[string]tunnel.Target) (*konnectivity.Connector, error) {
	allow, err := konnectivity.ParseAllow(a.TunnelAllow)
	if err != nil {
		return nil, err
	}
	config, err := a.tunnelTLS()
	if err != nil {
		return nil, err
	}
	exported, err := konnectivity.NewAgentMetrics(metrics.Registry)
	if err != nil {
		return nil, err
	}
	connector := &konnectivity.Connector{
		Member: member, Address: a.TunnelServer, TLS: config, ID: string(uuid.NewUUID()),
		Targets: targets, APIServer: apiServerNames(member, apiServer), Allow: allow, Metrics: exported,
	}
	if a.TunnelCertFile == "" {
		client, err := kubernetes.NewForConfig(hub)
		if err != nil {
			return nil, fmt.Errorf("reaching the hub at %s: %w", hub.Host, err)
		}
		connector.Token = tunnelToken{client: client, namespace: clusterv1beta1.MemberNamespace(member)}.get
	}
	return connector, nil
}

// apiServerNames are the addresses by which a server of upstream's asks for the
// member's API server.
func apiServerNames(member, apiServer string) []string {
	return []string{
		apiServer, net.JoinHostPort(member, "443"),
		"kubernetes.default:443", "kubernetes.default.svc:443", "kubernetes.default.svc.cluster.local:443",
	}
}

// tunnelTLS verifies the server. The agent's own certificate is read for each
// connection, so that a rotation needs no restart.
func (a *agent) tunnelTLS() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: a.TunnelServerName}
	if a.TunnelCAFile != "" {
		text, err := os.ReadFile(a.TunnelCAFile)
		if err != nil {
			return nil, fmt.Errorf("reading --tunnel-ca-file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("reading --tunnel-ca-file: %s holds no certificate", a.TunnelCAFile)
		}
	}
	if a.TunnelCertFile != "" {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(a.TunnelCertFile, a.TunnelKeyFile)
			return &pair, err
		}
	}
	return config, nil
}

// tunnelToken asks the hub for a token of the agent's own account, for one attempt to
// connect. None is kept: one that was revoked must not be tried twice.
type tunnelToken struct {
	client    kubernetes.Interface
	namespace string
}

func (t tunnelToken) get(ctx context.Context) (string, error) {
	seconds := int64(tunnelTokenLifetime.Seconds())
	request, err := t.client.CoreV1().ServiceAccounts(t.namespace).CreateToken(ctx, clusterv1beta1.AgentAccount, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			Audiences:         []string{tunnelAudience},
			ExpirationSeconds: &seconds,
			BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: clusterv1beta1.AgentCredentialSecret},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("requesting a token for the tunnel: %w", err)
	}
	return request.Status.Token, nil
}
