// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
	"fleetgate.io/fleetgate/pkg/tunnel"
)

// servePeers links the replicas of this gateway. Each trusts the serving certificates of the
// others, because only gateways can read the CA's key.
func (g *gateway) servePeers(ctx context.Context, t *tunnels) error {
	if err := g.certificates.WaitForFirst(ctx); err != nil {
		return ignoreEnd(ctx, err)
	}
	ctx, cancel := whileCarrying(ctx, t.drained)
	defer cancel()
	var roots atomic.Pointer[x509.CertPool]
	trust := func(ca []byte) {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(ca)
		roots.Store(pool)
	}
	ca, err := g.certificates.CABundle(ctx)
	if err != nil {
		return ignoreEnd(ctx, err)
	}
	trust(ca)
	peers := tunnel.NewPeers(t.registry, tunnel.PeerOptions{
		Name:        t.port.replica,
		Certificate: func() (*tls.Certificate, error) { return g.certificates.GetCertificate(nil) },
		Roots:       roots.Load,
		ServerName:  g.Serving.ServerName(g.Hub.Namespace),
		OnChange: func(replicas int) {
			t.port.setReplicas(replicas)
			t.registry.SendInfoAll()
		},
		OnMissing: g.reportMissing,
	})
	var l net.ListenConfig
	listener, err := l.Listen(ctx, "tcp", g.Serving.Listen(g.Tunnels.PeerPort))
	if err != nil {
		return explain(fmt.Errorf("listening for other replicas: %w", err))
	}
	addresses := make(chan []tunnel.Peer, 1)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return peers.Serve(ctx, listener) })
	group.Go(func() error { return peers.Run(ctx, addresses) })
	group.Go(func() error { return g.followAuthority(ctx, ca, trust) })
	if len(g.Tunnels.Peers) > 0 {
		addresses <- declaredPeers(g.Tunnels.Peers)
	} else {
		group.Go(func() error { return g.followEndpoints(ctx, addresses) })
	}
	return group.Wait()
}

// reportMissing writes an event about a missing link on the Service. The report of diagnose
// includes it.
func (g *gateway) reportMissing(address string, why error) {
	service := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: g.Hub.Namespace, Name: g.Serving.Service},
	}
	const reason, action = "ReplicaUnreachable", "LinkReplicas"
	g.manager.GetEventRecorder("fleetgate-gateway").Eventf(service, nil, corev1.EventTypeWarning, reason, action,
		"%s has no link to the replica at %s: %s. Allow the replicas to reach each other on --peer-port", replicaIdentity(), address, untrusted.Excerpt(why.Error(), 256))
}

// whileCarrying ends when drained is closed, not when ctx ends. A replica that stops first finishes
// the streams that it forwards for others, and that others forward for it.
func whileCarrying(ctx context.Context, drained <-chan struct{}) (context.Context, context.CancelFunc) {
	carrying, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		select {
		case <-drained:
		case <-carrying.Done():
		}
		cancel()
	}()
	return carrying, cancel
}

// followEndpoints sends the addresses of the Service's endpoints on each change. A newer list
// replaces an unread one.
func (g *gateway) followEndpoints(ctx context.Context, addresses chan []tunnel.Peer) error {
	factory := informers.NewSharedInformerFactoryWithOptions(g.clientset, 0, informers.WithNamespace(g.Hub.Namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.LabelSelector = labels.Set{discoveryv1.LabelServiceName: g.Serving.Service}.String()
		}))
	endpoints := factory.Discovery().V1().EndpointSlices()
	notify := func() {
		found, err := endpoints.Lister().List(labels.Everything())
		if err != nil {
			return // reads of a cache do not fail
		}
		select {
		case <-addresses:
		default:
		}
		addresses <- peersOf(found, g.Tunnels.PeerPort)
	}
	if _, err := endpoints.Informer().AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { notify() }, UpdateFunc: func(any, any) { notify() }, DeleteFunc: func(any) { notify() },
	}); err != nil {
		return fmt.Errorf("watching the endpoints of Service %s: %w", g.Serving.Service, err)
	}
	factory.Start(ctx.Done())
	<-ctx.Done()
	factory.Shutdown()
	return nil
}

// declaredPeers are the peers of --peers, all of which count as serving.
func declaredPeers(addresses []string) (peers []tunnel.Peer) {
	for _, address := range addresses {
		peers = append(peers, tunnel.Peer{Address: address, Serving: true})
	}
	return peers
}

// peersOf returns all running replicas. Replicas that are not ready or terminating also have
// tunnels, but accept no agents.
func peersOf(all []*discoveryv1.EndpointSlice, port int) []tunnel.Peer {
	serving := map[string]bool{}
	// A Pod with addresses of both families is one replica.
	families := map[types.UID]discoveryv1.AddressType{}
	sorted := slices.SortedStableFunc(slices.Values(all), func(a, b *discoveryv1.EndpointSlice) int {
		return cmp.Compare(a.AddressType, b.AddressType)
	})
	for _, slice := range sorted {
		if slice.AddressType == discoveryv1.AddressTypeFQDN {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			if pod := endpoint.TargetRef; pod != nil {
				if family, known := families[pod.UID]; known && family != slice.AddressType {
					continue
				}
				families[pod.UID] = slice.AddressType
			}
			if len(endpoint.Addresses) > 0 {
				address := net.JoinHostPort(endpoint.Addresses[0], strconv.Itoa(port))
				serving[address] = serving[address] || ptr.Deref(endpoint.Conditions.Ready, true)
			}
		}
	}
	var peers []tunnel.Peer
	for _, address := range slices.Sorted(maps.Keys(serving)) {
		peers = append(peers, tunnel.Peer{Address: address, Serving: serving[address]})
	}
	return peers
}
