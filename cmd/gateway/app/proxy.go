// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"golang.org/x/sync/errgroup"
	toolscache "k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/apiserver"
	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
	"fleetgate.io/fleetgate/pkg/serviceaccount/hub/credentials"
	"fleetgate.io/fleetgate/pkg/tunnel"
)

// addProxy serves the aggregated APIs and accepts the tunnels of agents.
func (g *gateway) addProxy(ctx context.Context) error {
	if !g.Features.ServesProxy() {
		return g.addDebugServer()
	}
	tunnels, err := g.newTunnels()
	if err != nil {
		return err
	}
	if err := g.addTunnels(tunnels); err != nil {
		return err
	}
	members := clustergateway.NewInventory()
	members.OnGone(tunnels.disconnect)
	credentials := credentials.NewCredentials(g.clientset)
	credentials.Changed = members.SetCredential
	if err := g.manager.Add(credentials); err != nil {
		return err
	}
	serving := make(chan struct{})
	settings := g.proxyConfig(tunnels, members, credentials, func() { close(serving) })
	if settings.Views, err = g.fleetViews(ctx); err != nil {
		return err
	}
	config, err := settings.Complete()
	if err != nil {
		return err
	}
	if err := g.manager.AddReadyzCheck("api", onceClosed(serving, "the way into members does not take requests yet")); err != nil {
		return err
	}
	if err := g.manager.AddReadyzCheck("agents-port", g.portReady(tunnels.port)); err != nil {
		return err
	}
	return g.manager.Add(everywhere(func(ctx context.Context) error {
		defer close(tunnels.drained)
		return g.serveAPI(ctx, config, members, credentials, tunnels)
	}))
}

// proxyConfig returns the configuration of the aggregated API server from the other parts and the
// options.
func (g *gateway) proxyConfig(tunnels *tunnels, members *clustergateway.Inventory, credentials *credentials.Credentials, onServing func()) *apiserver.Config {
	config := &apiserver.Config{
		Hub:         g.REST,
		Address:     g.Serving.Listen(g.Serving.SecurePort),
		Replicas:    func() int { return tunnels.port.info().Replicas },
		Certificate: g.certificates,
		Config: clustergateway.Config{
			Members: members,
			Credentials: clustergateway.CredentialsFunc(func(member string) (clustergateway.Credential, error) {
				credential, err := credentials.Credential(member)
				return clustergateway.Credential(credential), err
			}),
			Dialer:       proxyDialer{tunnels.registry},
			Liveness:     tunnels.registry,
			NotConnected: tunnel.ErrNotConnected,
			Unresponsive: tunnel.ErrUnresponsive,
			Metrics:      metrics.Registry,
			Spans:        g.spans,

			AuthorizeMemberRequests: g.Proxy.AuthorizeMemberRequests,
			MemberGroups:            g.Proxy.MemberGroups,
			MaxInFlightPerMember:    g.Proxy.MaxRequestsPerMember,
			MaxInFlightPerUser:      g.Proxy.MaxRequestsPerUser,
			MaxLongPerMember:        g.Proxy.MaxLongRequestsPerMember,
			MaxLongPerUser:          g.Proxy.MaxLongRequestsPerUser,
		},
		Tunnels:         tunnels.upgradeHandler,
		IsAgentOf:       tunnels.members.IsAgentOf,
		Debug:           g.debugPlacements(),
		MemberDomain:    g.Serving.MemberDomain,
		AuditPolicyFile: g.Proxy.AuditPolicyFile,
		AuditLogPath:    g.Proxy.AuditLogPath,
		DrainTime:       streamDrain,
		OnServing:       onServing,
	}
	if g.Proxy.AuditRequests {
		config.Recorder = clustergateway.LogRecords
	}
	return config
}

// serveAPI runs the API server once the certificate, the inventory and the credentials are loaded.
func (g *gateway) serveAPI(ctx context.Context, config apiserver.CompletedConfig, members *clustergateway.Inventory,
	credentials *credentials.Credentials, tunnels *tunnels) error {
	informer, err := g.manager.GetCache().GetInformer(ctx, &clusterv1beta1.MemberCluster{})
	if err != nil {
		return fmt.Errorf("watching MemberClusters: %w", err)
	}
	known, stop, err := members.Follow(informer)
	if err != nil {
		return err
	}
	defer func() { _ = stop() }()
	if err := endOnNewIdentity(informer, tunnels.disconnect); err != nil {
		return err
	}
	if err := g.certificates.WaitForFirst(ctx); err != nil {
		return ignoreEnd(ctx, err)
	}
	select {
	case <-ctx.Done():
		return nil
	case <-credentials.Synced():
	}
	// Without the inventory, requests for an existing member would return 404.
	if !toolscache.WaitForCacheSync(ctx.Done(), known) {
		return nil
	}
	server, err := config.New(ctx)
	if err != nil {
		return ignoreEnd(ctx, err)
	}
	var group errgroup.Group
	serving, stopped := context.WithCancel(ctx)
	group.Go(func() error {
		defer stopped()
		return server.Run(ctx)
	})
	// Agents move to other replicas at once. Streams in their tunnels to this replica have as long
	// to end as requests of the server.
	group.Go(func() error {
		<-serving.Done()
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), streamDrain)
		defer cancel()
		return tunnels.registry.Close(drain)
	})
	return group.Wait()
}

// onceClosed returns a check that passes when done is closed, and fails with otherwise before.
func onceClosed(done <-chan struct{}, otherwise string) healthz.Checker {
	return func(*http.Request) error {
		select {
		case <-done:
			return nil
		default:
			return errors.New(otherwise)
		}
	}
}

// proxyDialer dials members' API servers without waiting for their agents. The TLS handshake that
// follows receives a rejection, and the first request of a connection saves a round trip.
type proxyDialer struct{ *tunnel.Registry }

// DialMember opens a stream to a target of the member.
func (d proxyDialer) DialMember(ctx context.Context, member, target string) (net.Conn, error) {
	if target == tunnel.APIServer {
		return d.DialEagerly(ctx, member, target)
	}
	return d.Registry.DialMember(ctx, member, target)
}

// endOnNewIdentity disconnects the tunnels of a member whose identity changes.
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
