// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"context"
	"net"
	"testing"

	konnectivityclient "sigs.k8s.io/apiserver-network-proxy/konnectivity-client/pkg/client"

	"fleetgate.io/fleetgate/pkg/tunnel/tunneltest"
)

// benchAgent starts a gateway and our agent in front of the benchmarks' server.
func benchAgent(b *testing.B) *gateway {
	g := startGateway(b, gatewayOptions{})
	g.join(b, "m", toAPIServer(startTCP(b, "tcp", "127.0.0.1:0", func(c *net.TCPConn) { tunneltest.ServeBenchmark(c) })))
	return g
}

// benchGRPC is upstream's own client library, one HTTP/2 connection for all dials.
func benchGRPC(b *testing.B) tunneltest.BenchmarkDialer {
	g := benchAgent(b)
	reusable, err := konnectivityclient.CreateGRPCTunnel(context.Background(), "passthrough:///"+g.frontendPort, g.grpcOptions(b, "root")...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = reusable.Close() })
	return func() (net.Conn, error) { return reusable.DialContext(context.Background(), "tcp", "m:443") }
}

func benchConnect(b *testing.B) tunneltest.BenchmarkDialer {
	dial := benchAgent(b).connectDialer(b, "root", "m:443")
	return func() (net.Conn, error) { return dial(context.Background()) }
}

// benchGateway measures the gateway's own dials through an agent that speaks Konnectivity.
func benchGateway(b *testing.B) tunneltest.BenchmarkDialer {
	g := benchAgent(b)
	return func() (net.Conn, error) { return g.registry.DialMember(context.Background(), "m", "apiserver") }
}

// BenchmarkTunnel compares Konnectivity's two frontends, and the gateway's own dials through a
// Konnectivity agent, with direct connections in the same run. All ends are in this process.
func BenchmarkTunnel(b *testing.B) {
	// A frontend's HTTP/2 connection takes 2,048 streams; a CONNECT is two connections.
	const most = 2_000
	tunneltest.RunBenchmark(b, tunneltest.DirectTCP(), tunneltest.DirectTLS(),
		tunneltest.Path{Name: "konnectivity", Open: benchGateway, Most: most},
		tunneltest.Path{Name: "konnectivity-grpc", Open: benchGRPC, Most: most},
		tunneltest.Path{Name: "konnectivity-connect", Open: benchConnect, Most: most, MostBusy: 200},
	)
}
