// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"fleetgate.io/fleetgate/cmd/agent/app/options"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	tunnelv1alpha1 "fleetgate.io/fleetgate/pkg/apis/tunnel/v1alpha1"
	"fleetgate.io/fleetgate/pkg/tunnel"
)

const (
	// tunnelDrain is how long streams may continue after the agent begins to stop.
	tunnelDrain = 10 * time.Second
	// tunnelReplicas is the number of gateway replicas that the agent keeps tunnels to.
	tunnelReplicas = 2
	// portTokenLifetime is the shortest lifetime that API servers grant. The agent requests the
	// token when it connects, and the gateway verifies it once.
	portTokenLifetime = 10 * time.Minute
)

// serveTunnel keeps the tunnel open through the hub's API server or, if that is reachable, the
// gateway's own port. It serves the targets that the gateway opens in it: the member's API server
// and the agent itself.
func (a *agent) serveTunnel(ctx context.Context, hub *rest.Config, member string) error {
	hubTLS, err := rest.TLSConfigFor(hub)
	if err != nil {
		return fmt.Errorf("trusting the hub: %w", err)
	}
	clientset, err := kubernetes.NewForConfig(hub)
	if err != nil {
		return fmt.Errorf("reaching the hub at %s: %w", hub.Host, err)
	}
	apiServer, err := addressOf(a.MemberREST.Host)
	if err != nil {
		return err
	}
	egress := egressTo(hub, hubTLS, tunnel.EgressOf(a.HTTPSProxy, a.NoProxy))
	dialer := func(namespace string) *tunnel.HubDialer {
		return &tunnel.HubDialer{URL: tunnelURL(hub.Host, member, namespace), TLS: hubTLS, Token: a.enroller.Token, DialContext: egress.DialContext}
	}
	path := &hubPath{now: dialer(clusterv1beta1.MemberNamespace(member)).Dial, former: dialer("").Dial, byNamespace: a.tunnelStatus.reported.ByNamespace}
	own := tunnel.NewListener(tunnel.Agent)
	targets := map[string]tunnel.Target{
		tunnel.APIServer: tunnel.TCP(apiServer),
		tunnel.Agent:     own.Target(),
	}
	native := &tunnel.Connector{
		Member:        member,
		Sessions:      tunnelReplicas,
		Dial:          path.dial,
		Direct:        directDialer(clientset, egress, member),
		DrainTimeout:  tunnelDrain,
		Targets:       targets,
		OnStateChange: a.tunnelStatus.newest(),
	}
	if a.Tunnel.DataConnections {
		native.Data = dataDialer(egress, member)
	}
	run := native.Run
	if a.SpeaksKonnectivity() {
		connector, err := a.konnectivity(clientset, egress, member, apiServer, targets)
		if err != nil {
			return err
		}
		run = connector.Run
		a.tunnelStatus.reported.ByNamespace() // Konnectivity needs no right on the hub.
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return run(ctx) })
	group.Go(func() error { return serve(ctx, own, a.grants.Handler()) })
	group.Go(func() error {
		a.grants.Run(ctx)
		return nil
	})
	return group.Wait()
}

// proveTunnel verifies that a new address of the hub accepts the tunnel, if the current tunnel goes
// through the hub's API server. A proxy on that path can pass requests and reject upgrades.
func proveTunnel(config *options.Config, now *tunnelStatus) func(ctx context.Context, hub *rest.Config, member string) error {
	return func(ctx context.Context, hub *rest.Config, member string) error {
		if !now.hasUsed(tunnel.ViaHub) {
			return nil
		}
		hubTLS, err := rest.TLSConfigFor(hub)
		if err != nil {
			return fmt.Errorf("trusting the hub: %w", err)
		}
		egress := egressTo(hub, hubTLS, tunnel.EgressOf(config.HTTPSProxy, config.NoProxy))
		conn, err := (&tunnel.HubDialer{
			URL: tunnelURL(hub.Host, member, clusterv1beta1.MemberNamespace(member)), TLS: hubTLS, DialContext: egress.DialContext,
			Token: func(context.Context) (string, error) { return hub.BearerToken, nil },
		}).Dial(ctx)
		if err != nil {
			return fmt.Errorf("no tunnel can be opened there: %w", err)
		}
		return conn.Close()
	}
}

// egressTo connects to a hub like requests to its API server do. A proxy in the kubeconfig then
// applies to all connections to the hub, and uses the kubeconfig's CA. The CA of an HTTPS proxy is
// appended to the hub's own in that kubeconfig.
func egressTo(hub *rest.Config, hubTLS *tls.Config, egress *tunnel.Egress) *tunnel.Egress {
	if hub.Proxy != nil {
		egress.Proxy = func(to *url.URL) (*url.URL, error) { return hub.Proxy(&http.Request{URL: to}) }
	}
	if hubTLS != nil {
		egress.TLS = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: hubTLS.RootCAs}
	}
	return egress
}

// hubPath opens tunnels through the hub's API server. It uses the agent's right in the member's
// namespace or, with a gateway of the previous version, its right on the whole hub.
type hubPath struct {
	now, former func(context.Context) (net.Conn, error)
	// byNamespace is called when a tunnel was opened without the former right.
	byNamespace func()
}

func (r *hubPath) dial(ctx context.Context) (net.Conn, error) {
	conn, err := r.now(ctx)
	if err == nil {
		r.byNamespace()
		return conn, nil
	}
	var refused *tunnel.HubError
	if !errors.As(err, &refused) || !slices.Contains(unknownPath(), refused.StatusCode) {
		return nil, err
	}
	conn, formerErr := r.former(ctx)
	if formerErr != nil && refused.StatusCode != http.StatusBadRequest {
		return nil, err // The error of the former path, which is obsolete, does not help.
	}
	return conn, formerErr
}

// unknownPath returns the status codes of a gateway that does not know the path, and of a hub whose
// Role for the member is of the previous version.
func unknownPath() []int {
	return []int{http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound}
}

// directDialer dials the gateway's own port with a token that is valid only there, bound to the
// same Secret as the agent's own.
func directDialer(hub kubernetes.Interface, egress *tunnel.Egress, member string) func(context.Context, tunnel.PortInfo) (net.Conn, error) {
	return func(ctx context.Context, port tunnel.PortInfo) (net.Conn, error) {
		dialer, err := portDialer(egress, member, port)
		if err != nil {
			return nil, err
		}
		dialer.Token = func(ctx context.Context) (string, error) { return portToken(ctx, hub, member) }
		return dialer.Dial(ctx)
	}
}

// dataDialer opens data connections at the gateway's own port.
func dataDialer(egress *tunnel.Egress, member string) func(context.Context, tunnel.PortInfo, string) (*net.TCPConn, error) {
	return func(ctx context.Context, port tunnel.PortInfo, nonce string) (*net.TCPConn, error) {
		dialer, err := portDialer(egress, member, port)
		if err != nil {
			return nil, err
		}
		dialer.Token = func(context.Context) (string, error) { return nonce, nil }
		return dialer.DialData(ctx)
	}
}

// portDialer returns a dialer without a token.
func portDialer(egress *tunnel.Egress, member string, port tunnel.PortInfo) (*tunnel.HubDialer, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(port.CA)) {
		return nil, errors.New("the gateway sent no CA that could verify its port")
	}
	return &tunnel.HubDialer{
		URL:         tunnelURL((&url.URL{Scheme: "https", Host: port.Address}).String(), member, ""),
		TLS:         &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots, ServerName: port.ServerName},
		DialContext: egress.DialContext,
	}, nil
}

func portToken(ctx context.Context, hub kubernetes.Interface, member string) (string, error) {
	response, err := hub.CoreV1().ServiceAccounts(clusterv1beta1.MemberNamespace(member)).CreateToken(ctx, clusterv1beta1.AgentAccount,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			Audiences:         []string{tunnelv1alpha1.TokenAudience},
			ExpirationSeconds: ptr.To(int64(portTokenLifetime.Seconds())),
			BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: clusterv1beta1.AgentCredentialSecret},
		}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("requesting a token for tunnels: %w", err)
	}
	return response.Status.Token, nil
}
