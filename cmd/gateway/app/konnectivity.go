// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"net"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"fleetgate.io/fleetgate/cmd/gateway/app/options"
	tunnelv1alpha1 "fleetgate.io/fleetgate/pkg/apis/tunnel/v1alpha1"
	tunnelsapi "fleetgate.io/fleetgate/pkg/apiserver/tunnels"
	"fleetgate.io/fleetgate/pkg/cluster/hub/identity"
	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/konnectivity"
)

// konnectivityReplicas is the most replicas of the gateway that an agent connects to. The other
// replicas forward their dials.
const konnectivityReplicas = 2

// konnectivityServers are Konnectivity's two sides; a side that is disabled is nil.
type konnectivityServers struct {
	agents    *konnectivity.AgentServer
	frontends *konnectivity.FrontendServer
	// frontendCAs verify client certificates of frontends. If nil, frontends authenticate with
	// tokens.
	frontendCAs *tunnelsapi.CAs
}

// newKonnectivity creates the enabled servers. The agents' tunnels join the common registry.
func (g *gateway) newKonnectivity(registry *tunnel.Registry, members *identity.Identities, port *advertised) (*konnectivityServers, error) {
	servers, given := &konnectivityServers{}, g.Tunnels.Konnectivity
	if !given.Agents && given.FrontendsAddress == "" {
		return servers, nil
	}
	exported, err := konnectivity.NewMetrics(metrics.Registry)
	if err != nil {
		return nil, err
	}
	allow, err := konnectivity.ParseAllow(given.Allow)
	if err != nil {
		return nil, err
	}
	if given.Agents {
		if servers.agents, err = konnectivity.NewAgentServer(konnectivity.AgentServerOptions{
			// The port verifies client certificates itself.
			Credentials: konnectivity.Credentials{Token: identified(tunnelsapi.Tokens(g.clientset.AuthenticationV1(), tunnelv1alpha1.TokenAudience))},
			IsAgentOf:   members.IsAgentOf,
			MembersOf:   members.MembersOf,
			Watched:     isWatched,
			Join:        registry.ServeSession,
			Changed:     registry.SessionsChanged,
			ID:          replicaIdentity(),
			Replicas: func() int {
				if given.Replicas > 0 {
					return given.Replicas
				}
				return min(port.info().Replicas, konnectivityReplicas)
			},
			StreamsPerAgent: given.Streams,
			APIServer:       given.APIServer,
			APIServerOf:     (&identity.APIServers{Reader: g.manager.GetClient()}).Of,
			Allow:           allow,
			Metrics:         exported,
		}); err != nil {
			return nil, fmt.Errorf("setting up Konnectivity's agents: %w", err)
		}
	}
	if given.FrontendsAddress == "" {
		return servers, nil
	}
	if given.FrontendsCAFile != "" {
		if servers.frontendCAs, err = tunnelsapi.FollowCAs("tunnels.konnectivity.frontendsCAFile", given.FrontendsCAFile); err != nil {
			return nil, err
		}
	}
	if servers.frontends, err = g.newFrontends(registry, servers.frontendCAs, allow, exported); err != nil {
		return nil, fmt.Errorf("setting up Konnectivity's frontends: %w", err)
	}
	return servers, nil
}

func (g *gateway) newFrontends(registry *tunnel.Registry, cas *tunnelsapi.CAs, allow konnectivity.Allow, exported *konnectivity.Metrics) (*konnectivity.FrontendServer, error) {
	dials, err := tunnelsapi.NewDials(g.clientset.AuthorizationV1())
	if err != nil {
		return nil, err
	}
	credentials := konnectivity.Credentials{
		Token: identified(tunnelsapi.Remembering(tunnelsapi.Tokens(g.clientset.AuthenticationV1(), options.FrontendAudience))),
	}
	if cas != nil {
		credentials.ClientCAs = cas.Pool
	}
	return konnectivity.NewFrontendServer(konnectivity.FrontendServerOptions{
		Credentials: credentials,
		Authorize: func(ctx context.Context, id konnectivity.Identity, member string) (bool, error) {
			return dials.Allowed(ctx, id.Name, id.Groups, member)
		},
		Dialer:      registry,
		Certificate: g.certificates.GetCertificate,
		Domain:      g.Tunnels.Konnectivity.FrontendsDomain,
		Allow:       allow,
		Metrics:     exported,
	})
}

// addKonnectivity adds the servers that exist.
func (g *gateway) addKonnectivity(t *tunnels) error {
	if agents := t.konnectivity.agents; agents != nil {
		if err := g.manager.Add(everywhere(func(ctx context.Context) error {
			// The registry drains these sessions with all others.
			ctx, cancel := whileCarrying(ctx, t.drained)
			defer cancel()
			return agents.Run(ctx, 0)
		})); err != nil {
			return err
		}
	}
	if cas := t.konnectivity.frontendCAs; cas != nil {
		if err := g.manager.Add(everywhere(cas.Run)); err != nil {
			return err
		}
	}
	if frontends := t.konnectivity.frontends; frontends != nil {
		return g.manager.Add(g.listening(g.Tunnels.Konnectivity.FrontendsAddress, frontends.Serve))
	}
	return nil
}

// identified converts the token's identity to Konnectivity's type.
func identified(identify tunnelsapi.Identify) func(context.Context, string) (konnectivity.Identity, bool, error) {
	return func(ctx context.Context, token string) (konnectivity.Identity, bool, error) {
		id, ok, err := identify(ctx, token)
		return konnectivity.Identity{Name: id.Name, Groups: id.Groups, Expires: id.Expires}, ok, err
	}
}

// listening runs a server at an address in every replica, once there is a certificate.
func (g *gateway) listening(address string, serve func(context.Context, net.Listener, time.Duration) error) everywhere {
	return func(ctx context.Context) error {
		if err := g.certificates.WaitForFirst(ctx); err != nil {
			return ignoreEnd(ctx, err)
		}
		var config net.ListenConfig
		listener, err := config.Listen(ctx, "tcp", address)
		if err != nil {
			return explain(fmt.Errorf("listening at %s: %w", address, err))
		}
		return serve(ctx, listener, streamDrain)
	}
}
