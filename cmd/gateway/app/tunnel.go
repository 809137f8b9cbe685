// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	tunnelv1alpha1 "fleetgate.io/fleetgate/pkg/apis/tunnel/v1alpha1"
	tunnelsapi "fleetgate.io/fleetgate/pkg/apiserver/tunnels"
	"fleetgate.io/fleetgate/pkg/cluster/hub/identity"
	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/konnectivity"
)

// tunnels has the registry of members' tunnels, and the servers around it.
type tunnels struct {
	registry *tunnel.Registry
	members  *identity.Identities
	port     *advertised
	// konnectivity are the servers for Konnectivity's agents and frontends that options enable.
	konnectivity *konnectivityServers
	// agentCAs verify client certificates of agents at the port. If nil, agents authenticate with
	// tokens.
	agentCAs *tunnelsapi.CAs
	// drained is closed when the registry is closed. This replica then forwards no stream for
	// another one.
	drained chan struct{}
}

// unreadInTunnels limits the unread data of all tunnels. Together with
// clustergateway.DefaultUnread it makes the 512 MiB of docs/reference/tunnels.md.
const unreadInTunnels = 256 << 20

// newTunnels creates the registry that all protocols share.
func (g *gateway) newTunnels() (*tunnels, error) {
	port := &advertised{replica: replicaIdentity(), replicas: 1}
	registry, err := tunnel.NewRegistry(tunnel.Options{Registerer: metrics.Registry, Info: port.info, Unread: unreadInTunnels, DataConnections: g.Tunnels.DataConnections})
	if err != nil {
		return nil, fmt.Errorf("setting up tunnels: %w", err)
	}
	members := &identity.Identities{Reader: g.manager.GetClient(), Seats: identity.FleetSeats()}
	servers, err := g.newKonnectivity(registry, members, port)
	if err != nil {
		return nil, err
	}
	t := &tunnels{registry: registry, members: members, port: port, konnectivity: servers, drained: make(chan struct{})}
	if file := g.Tunnels.AgentsClientCAFile; file != "" {
		if t.agentCAs, err = tunnelsapi.FollowCAs("tunnels.agentsClientCAFile", file); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// upgradeHandler serves tunnels through the hub's API server, which has authenticated the agent. The
// user is reviewed during the session. When the credential expires is not known here.
func (t *tunnels) upgradeHandler(member string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var credential tunnel.Credential
		if user, ok := apirequest.UserFrom(req.Context()); ok {
			name := user.GetName()
			credential.StillValid = func(ctx context.Context) (bool, error) { return t.members.IsAgentOf(ctx, name, member) }
		}
		t.registry.ServeUpgrade(w, req, member, credential)
	})
}

// isWatched is true for a member's own account: Revocation watches it and the Secret of its tokens.
func isWatched(username, member string) bool {
	own, ok := identity.FleetSeats().MemberOfUsername(username)
	return ok && own == member
}

// disconnect ends a member's tunnels of every protocol.
func (t *tunnels) disconnect(member string) {
	t.registry.Disconnect(member)
	if agents := t.konnectivity.agents; agents != nil {
		agents.Disconnect(member)
	}
}

// others returns the handlers of other protocols on the agents' port.
func (t *tunnels) others() map[string]func(context.Context, *tls.Conn) {
	if t.konnectivity.agents == nil {
		return nil
	}
	return map[string]func(context.Context, *tls.Conn){konnectivity.Protocol: t.konnectivity.agents.Take}
}

// addTunnels adds every listener and client of tunnels besides the aggregated API.
func (g *gateway) addTunnels(t *tunnels) error {
	hub, err := metadata.NewForConfig(g.REST)
	if err != nil {
		return fmt.Errorf("reaching the hub at %s: %w", g.REST.Host, err)
	}
	revocation := &tunnelsapi.Revocation{Client: hub, Disconnect: t.disconnect}
	if err := g.manager.Add(everywhere(revocation.Run)); err != nil {
		return err
	}
	if g.Tunnels.PeerPort != 0 {
		if err := g.manager.Add(everywhere(func(ctx context.Context) error { return g.servePeers(ctx, t) })); err != nil {
			return err
		}
	}
	if t.agentCAs != nil {
		if err := g.manager.Add(everywhere(t.agentCAs.Run)); err != nil {
			return err
		}
	}
	if g.Tunnels.AgentsAddress != "" {
		if err := g.manager.Add(everywhere(func(ctx context.Context) error { return g.serveAgents(ctx, t) })); err != nil {
			return err
		}
	}
	if err := g.manager.Add(everywhere(func(ctx context.Context) error { return g.countMembers(ctx, t) })); err != nil {
		return err
	}
	return g.addKonnectivity(t)
}

// countMembers advertises the number of members. New sessions receive it at once, existing ones
// when it has grown by half.
func (g *gateway) countMembers(ctx context.Context, t *tunnels) error {
	const interval = time.Minute
	for logged := 0; ; {
		members := &clusterv1beta1.MemberClusterList{}
		err := g.manager.GetClient().List(ctx, members, client.UnsafeDisableDeepCopy)
		if err == nil {
			t.port.setMembers(len(members.Items))
		} else if ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Counting members failed; agents that lose their tunnels reconnect at the rate of the last count")
		}
		if count := len(members.Items); count > logged+logged/2 {
			logged = count
			t.registry.SendInfoAll()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(interval):
		}
	}
}

// serveAgents serves the agents' port, and advertises it once it is open.
func (g *gateway) serveAgents(ctx context.Context, t *tunnels) error {
	if err := g.certificates.WaitForFirst(ctx); err != nil {
		return ignoreEnd(ctx, err)
	}
	ca, err := g.certificates.CABundle(ctx)
	if err != nil {
		return ignoreEnd(ctx, err)
	}
	var l net.ListenConfig
	listener, err := l.Listen(ctx, "tcp", g.Serving.Listen(g.Tunnels.AgentsPort))
	if err != nil {
		return explain(fmt.Errorf("listening for agents: %w", err))
	}
	announce := func(ca []byte) {
		t.port.set(&tunnel.PortInfo{
			Address: g.Tunnels.AgentsAddress, CA: string(ca), ServerName: g.Serving.ServerName(g.Hub.Namespace),
		})
		t.registry.SendInfoAll()
	}
	announce(ca)
	port := &tunnel.Port{
		Registry:     t.registry,
		TLS:          &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: g.certificates.GetCertificate},
		Path:         memberOfPath,
		Authenticate: userOf(tunnelsapi.Tokens(g.clientset.AuthenticationV1(), tunnelv1alpha1.TokenAudience)),
		IsAgentOf:    t.members.IsAgentOf,
		Watched:      isWatched,
		Others:       t.others(),
	}
	if t.agentCAs != nil {
		port.ClientCAs = t.agentCAs.Pool
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return port.Serve(ctx, listener) })
	group.Go(func() error {
		return g.followAuthority(ctx, ca, func(ca []byte) {
			announce(ca)
			// Agents replace sessions that the old CA verified; none is cut.
			t.registry.Renew()
		})
	})
	return group.Wait()
}

// authorityCheck is the interval in which a replica compares the CA of the gateways' certificates.
// It changes about once a year.
const authorityCheck = time.Minute

// followAuthority calls changed with each new CA bundle.
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
			continue // retry when the hub is unreachable
		}
		before = ca
		changed(ca)
	}
}

// advertised is the information about this gateway that agents receive.
type advertised struct {
	replica string

	// mu guards the fields below it.
	mu       sync.Mutex
	port     *tunnel.PortInfo
	replicas int
	members  int
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

func (a *advertised) setMembers(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.members = n
}

func (a *advertised) info() tunnel.Info {
	a.mu.Lock()
	defer a.mu.Unlock()
	return tunnel.Info{Replica: a.replica, Replicas: a.replicas, Members: a.members, Port: a.port}
}

const tunnelPathPrefix = "/apis/" + tunnelv1alpha1.GroupName + "/v1alpha1/" + tunnelv1alpha1.Resource + "/"

// memberOfPath accepts the same path as the hub's API server.
func memberOfPath(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, tunnelPathPrefix)
	if !ok {
		return "", false
	}
	member, ok := strings.CutSuffix(rest, "/"+tunnelv1alpha1.SubresourceProxy)
	return member, ok && member != "" && !strings.Contains(member, "/")
}

// userOf reduces an identity to the user name of an agent and the expiry of its token.
func userOf(identify tunnelsapi.Identify) func(context.Context, string) (string, time.Time, bool, error) {
	return func(ctx context.Context, token string) (string, time.Time, bool, error) {
		id, ok, err := identify(ctx, token)
		return id.Name, id.Expires, ok, err
	}
}
