// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"errors"
	"net"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	certutil "k8s.io/client-go/util/cert"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	tunnelv1alpha1 "fleetgate.io/fleetgate/pkg/apis/tunnel/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver"
	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/tunneltest"
	"fleetgate.io/fleetgate/test/support/env"
)

// BenchmarkTunnel measures the path that needs a hub, beside the baselines without one (benchmarks
// of this name in pkg/tunnel). All ends are in this process except the hub's API server, whose CPU
// time is included, and those of tunnelsApart.
func BenchmarkTunnel(b *testing.B) {
	hub, err := env.Start(b.Context(), env.Options{Name: "tunnel-hub"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := hub.Stop(context.Background()); err != nil {
			b.Error(err)
		}
	})
	tunneltest.RunBenchmark(b, append(tunnelsApart(), tunneltest.DirectTCP(), tunneltest.DirectTLS(), tunneltest.Path{
		Name: "native-via-hub",
		Open: func(b *testing.B) tunneltest.BenchmarkDialer { return dialThroughHub(b, hub) },
		CPU:  func() time.Duration { return cpuOf(b, hub.APIServer.PID()) },
	})...)
}

const (
	tunnelMember = "one"
	// tunnelStreams is more than any measurement opens.
	tunnelStreams = 20_000
)

// dialThroughHub dials over a tunnel that an agent has opened through the hub's API server, which
// aggregates the gateway's API server.
func dialThroughHub(b *testing.B, hub *env.Cluster) tunneltest.BenchmarkDialer {
	b.Helper()
	registry := tunneltest.NewRegistry(b, tunnel.Options{MaxStreamsPerSession: tunnelStreams})
	aggregateTunnels(b, hub, registry)
	secured, err := rest.TLSConfigFor(hub.Config())
	if err != nil {
		b.Fatal(err)
	}
	target := tunneltest.Serve(b, "127.0.0.1", func(c *net.TCPConn) { tunneltest.ServeBenchmark(c) })
	agent := &tunnel.Connector{
		Member: tunnelMember, MaxStreams: tunnelStreams, Targets: map[string]tunnel.Target{tunnel.APIServer: tunnel.TCP(target)},
		Dial: (&tunnel.HubDialer{
			URL: hub.URL + "/apis/" + tunnelv1alpha1.GroupVersion.String() + "/tunnels/" + tunnelMember + "/proxy",
			// The hub identifies the agent by this client certificate.
			TLS: secured, Token: func(context.Context) (string, error) { return "", nil },
		}).Dial,
	}
	background(b, agent.Run)
	await(b, "the tunnel through the hub", func(context.Context) error {
		if !registry.Connected(tunnelMember) {
			return errors.New("the agent is not connected")
		}
		return nil
	})
	return func() (net.Conn, error) { return registry.DialMember(b.Context(), tunnelMember, tunnel.APIServer) }
}

// background runs a function until the end of the benchmark.
func background(b *testing.B, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
}

// aggregateTunnels runs the gateway's API server with the registry, and registers its group on the
// hub.
func aggregateTunnels(b *testing.B, hub *env.Cluster, registry *tunnel.Registry) {
	b.Helper()
	const service = "gateway"
	certificate, key, err := certutil.GenerateSelfSignedCertKey(service+"."+gatewayNamespace+".svc", nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	serving, err := dynamiccertificates.NewStaticCertKeyContent("benchmark", certificate, key)
	if err != nil {
		b.Fatal(err)
	}
	members := clustergateway.NewInventory()
	if _, _, err := members.Follow(oneMember{}); err != nil {
		b.Fatal(err)
	}
	completed, err := apiserver.Config{
		Hub: hub.Config(), Address: "127.0.0.1:0", Certificate: serving,
		Config: clustergateway.Config{
			Members: members, Dialer: registry, Liveness: registry, NotConnected: tunnel.ErrNotConnected,
			Credentials: clustergateway.CredentialsFunc(func(string) (clustergateway.Credential, error) {
				return clustergateway.Credential{}, errors.New("the benchmark sends no requests to members")
			}),
		},
		Tunnels:   registry.UpgradeHandler,
		IsAgentOf: func(context.Context, string, string) (bool, error) { return true, nil },
	}.Complete()
	if err != nil {
		b.Fatal(err)
	}
	server, err := completed.New(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	background(b, server.Run)

	api, err := hub.Client(scheme.AddToScheme, apiregistrationv1.AddToScheme)
	if err != nil {
		b.Fatal(err)
	}
	_, portText, err := net.SplitHostPort(server.Address().String())
	if err != nil {
		b.Fatal(err)
	}
	port, err := strconv.ParseInt(portText, 10, 32)
	if err != nil {
		b.Fatal(err)
	}
	reference := &apiregistrationv1.ServiceReference{Namespace: gatewayNamespace, Name: service, Port: new(int32(port))}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: gatewayNamespace}},
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: gatewayNamespace, Name: service},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
		},
		&apiregistrationv1.APIService{
			ObjectMeta: metav1.ObjectMeta{Name: tunnelv1alpha1.GroupVersion.Version + "." + tunnelv1alpha1.GroupName},
			Spec: apiregistrationv1.APIServiceSpec{
				Group: tunnelv1alpha1.GroupName, Version: tunnelv1alpha1.GroupVersion.Version, Service: reference, CABundle: certificate,
				GroupPriorityMinimum: 1000, VersionPriority: 10,
			},
		},
	} {
		if err := api.Create(b.Context(), object); err != nil {
			b.Fatal(err)
		}
	}
}

// oneMember is an informer with the benchmark's member.
type oneMember struct {
	cache.ResourceEventHandlerRegistration
}

var _ clustergateway.Informer = oneMember{}

func (o oneMember) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	h.OnAdd(&clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: tunnelMember, ResourceVersion: "1"}}, true)
	return o, nil
}

func (oneMember) HasSynced() bool { return true }

func (oneMember) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error { return nil }
