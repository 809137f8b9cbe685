// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	toolscache "k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	tunnelv1alpha1 "fleetgate.io/fleetgate/pkg/apis/tunnel/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver/tunnels"
	"fleetgate.io/fleetgate/pkg/cluster"
	"fleetgate.io/fleetgate/pkg/tunnel"
)

// tunnelParts are what the gateway needs to hold tunnels.
type tunnelParts struct {
	registry *tunnel.Registry
	members  *cluster.Members
	port     *advertised
	// disconnect ends a member's tunnels of every protocol.
	disconnect func(member string)
	// drained is closed when the registry is: no stream is left then that this replica
	// carries for another one.
	drained chan struct{}
	// others take over connections to the agents' port, by their protocol.
	others map[string]func(context.Context, *tls.Conn)
}

// newTunnels makes the registry, has tunnels end whose agent's identity is taken
// away, and opens the agents' port if it is advertised.
func (g *gateway) newTunnels() (*tunnelParts, error) {
	parts := &tunnelParts{
		port: &advertised{replica: identity(), replicas: 1}, members: &cluster.Members{Reader: g.manager.GetClient(), Seats: cluster.FleetSeats()},
		drained: make(chan struct{}),
	}
	registry, err := tunnel.NewRegistry(tunnel.Options{Registerer: metrics.Registry, Info: parts.port.info})
	if err != nil {
		return nil, fmt.Errorf("setting up tunnels: %w", err)
	}
	parts.registry, parts.disconnect = registry, registry.Disconnect
	client, err := metadata.NewForConfig(g.REST)
	if err != nil {
		return nil, fmt.Errorf("reaching the hub at %s: %w", g.REST.Host, err)
	}
	revocation := &tunnels.Revocation{Client: client, Disconnect: func(member string) { parts.disconnect(member) }}
	if err := g.manager.Add(everywhere(revocation.Run)); err != nil {
		return nil, err
	}
	if g.Tunnels.PeerPort != 0 {
		if err := g.manager.Add(everywhere(func(ctx context.Context) error { return g.servePeers(ctx, parts) })); err != nil {
			return nil, err
		}
	}
	if g.Tunnels.AgentsAddress == "" {
		return parts, nil
	}
	return parts, g.manager.Add(everywhere(func(ctx context.Context) error { return g.serveAgents(ctx, parts) }))
}

// proxyDialer dials members' API servers without waiting for their agents: the TLS
// handshake that follows hears of a refusal, and the first request of a connection
// comes a round trip earlier.
type proxyDialer struct{ *tunnel.Registry }

// DialMember opens a stream to a target of the member.
func (d proxyDialer) DialMember(ctx context.Context, member, target string) (net.Conn, error) {
	if target == tunnel.APIServer {
		return d.DialEagerly(ctx, member, target)
	}
	return d.Registry.DialMember(ctx, member, target)
}

// endOnNewIdentity ends the tunnels of members that are given to another identity.
func endOnNewIdentity(informer ctrlcache.Informer, disconnect func(member string)) error {
	_, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			old, _ := before.(*clusterv1beta1.MemberCluster)
			current, _ := after.(*clusterv1beta1.MemberCluster)
			if old != nil && current != nil && old.Spec.Identity != current.Spec.Identity {
				disconnect(current.Name)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watching the identities of members: %w", err)
	}
	return nil
}

// serveAgents runs the agents' port, and tells agents of it once it is open.
func (g *gateway) serveAgents(ctx context.Context, parts *tunnelParts) error {
	if err := g.certificates.WaitForFirst(ctx); err != nil {
		return ignoreEnd(ctx, err)
	}
	ca, err := g.certificates.CABundle(ctx)
	if err != nil {
		return ignoreEnd(ctx, err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: g.certificates.GetCertificate}
	if len(g.AgentsClientCA) > 0 {
		config.ClientCAs = x509.NewCertPool()
		config.ClientCAs.AppendCertsFromPEM(g.AgentsClientCA)
	}
	var l net.ListenConfig
	listener, err := l.Listen(ctx, "tcp", net.JoinHostPort(g.Serving.BindAddress, strconv.Itoa(g.Tunnels.AgentsPort)))
	if err != nil {
		return explain(fmt.Errorf("listening for agents: %w", err))
	}
	tell := func(ca []byte) {
		parts.port.set(&tunnel.PortInfo{
			Address: g.Tunnels.AgentsAddress, CA: string(ca), ServerName: g.Serving.Service + "." + g.Hub.Namespace + ".svc",
		})
		parts.registry.TellAll()
	}
	tell(ca)
	port := &tunnel.Port{
		Registry:     parts.registry,
		TLS:          config,
		Path:         memberOfPath,
		Authenticate: tunnelUser(g.clientset),
		MembersOf:    parts.members.MembersOf,
		Others:       parts.others,
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return port.Serve(ctx, listener) })
	group.Go(func() error {
		return g.followAuthority(ctx, ca, func(ca []byte) {
			tell(ca)
			// Sessions that the old authority vouched for are made anew, none is cut.
			parts.registry.Renew()
		})
	})
	return group.Wait()
}

// authorityCheck is how often a replica looks whether the authority of the gateways'
// certificates is still the same: it changes about once a year.
const authorityCheck = time.Minute

// followAuthority calls changed with the CA bundle whenever it is another than before.
func (g *gateway) followAuthority(ctx context.Context, before []byte, changed func(ca []byte)) error {
	ticker := time.NewTicker(authorityCheck)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		ca, err := g.certificates.CABundle(ctx)
		if err != nil || bytes.Equal(ca, before) {
			continue // a hub that is away is asked again
		}
		before = ca
		changed(ca)
	}
}

// advertised is what agents are told about this gateway.
type advertised struct {
	replica string

	// mu guards the fields below it.
	mu       sync.Mutex
	port     *tunnel.PortInfo
	replicas int
}

func (a *advertised) set(port *tunnel.PortInfo) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.port = port
}

func (a *advertised) setReplicas(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.replicas = n
}

func (a *advertised) info() tunnel.Info {
	a.mu.Lock()
	defer a.mu.Unlock()
	return tunnel.Info{Replica: a.replica, Replicas: a.replicas, Port: a.port}
}

const tunnelPathPrefix = "/apis/" + tunnelv1alpha1.GroupName + "/v1alpha1/" + tunnelv1alpha1.Resource + "/"

// memberOfPath reads the same path as through the hub's API server.
func memberOfPath(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, tunnelPathPrefix)
	if !ok {
		return "", false
	}
	member, ok := strings.CutSuffix(rest, "/"+tunnelv1alpha1.SubresourceProxy)
	return member, ok && member != "" && !strings.Contains(member, "/")
}

// tunnelUser asks the hub whose token it is. Only tokens that were made for tunnels
// count: one for the hub's API is worth nothing here.
func tunnelUser(hub kubernetes.Interface) func(context.Context, string) (string, bool, error) {
	reviews := &tokenReviews{client: hub, audience: tunnelv1alpha1.TokenAudience}
	return func(ctx context.Context, token string) (string, bool, error) {
		id, ok, err := reviews.identify(ctx, token)
		return id.Name, ok, err
	}
}
