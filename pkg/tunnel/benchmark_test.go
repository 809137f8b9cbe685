// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http/httptest"
	"testing"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/native"
	"fleetgate.io/fleetgate/pkg/tunnel/tunneltest"
)

// dialNative uses an agent that dialed in with TLS and pipes to the server over plain TCP: this
// path and the baseline encrypt once.
func dialNative(b *testing.B) tunneltest.BenchmarkDialer {
	server, client := tunneltest.BenchmarkTLS()
	r := tunneltest.NewRegistry(b, tunnel.Options{MaxStreamsPerSession: 20_000})
	gateway := tunneltest.Serve(b, "127.0.0.1", func(c *net.TCPConn) {
		_ = r.Serve(b.Context(), "one", tls.Server(native.Batch(c), server))
	})
	return dialThrough(b, r, func(context.Context) (net.Conn, error) {
		raw, err := net.Dial("tcp", gateway)
		if err != nil {
			return nil, err
		}
		return tls.Client(native.Batch(raw), client), nil
	})
}

// dialUpgraded is native as the hub's API server would upgrade it, without a hub in between: the
// gateway's end of TLS is net/http's.
func dialUpgraded(b *testing.B) tunneltest.BenchmarkDialer {
	r := tunneltest.NewRegistry(b, tunnel.Options{MaxStreamsPerSession: 20_000})
	server := httptest.NewUnstartedServer(r.UpgradeHandler("one"))
	server.StartTLS()
	b.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	hub := &tunnel.HubDialer{
		URL:   server.URL,
		TLS:   &tls.Config{RootCAs: roots, ServerName: "example.com"},
		Token: func(context.Context) (string, error) { return "", nil },
	}
	return dialThrough(b, r, hub.Dial)
}

// dialRelayed asks a gateway that has no tunnel. Another one, which it reaches with TLS, has it on
// plain TCP, so that this path and the baseline encrypt once.
func dialRelayed(b *testing.B) tunneltest.BenchmarkDialer {
	ca := newAuthority(b)
	one, _ := startReplica(b, "gateway-1", ca)
	two, _ := startReplica(b, "gateway-2", ca)
	agents := tunneltest.Serve(b, "127.0.0.1", func(c *net.TCPConn) { _ = two.Serve(context.Background(), "one", c) })
	dialThrough(b, two.Registry, func(context.Context) (net.Conn, error) { return net.Dial("tcp", agents) })
	one.addresses <- serving(two.address)
	tunneltest.Eventually(b, "the member can be reached", func() bool { return one.Reachable("one") })
	return func() (net.Conn, error) { return one.DialMember(context.Background(), "one", tunnel.APIServer) }
}

func dialThrough(b *testing.B, r *tunnel.Registry, dial func(context.Context) (net.Conn, error)) tunneltest.BenchmarkDialer {
	target := tunnel.TCP(tunneltest.Serve(b, "127.0.0.1", func(c *net.TCPConn) { tunneltest.ServeBenchmark(c) }))
	connector := &tunnel.Connector{
		Member: "one", Dial: dial, MaxStreams: 20_000,
		Targets: map[string]tunnel.Target{tunnel.APIServer: target},
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- connector.Run(ctx) }()
	b.Cleanup(func() { cancel(); <-ended })
	tunneltest.Eventually(b, "the member is connected", func() bool { return r.Connected("one") })
	return func() (net.Conn, error) { return r.DialMember(ctx, "one", tunnel.APIServer) }
}

// BenchmarkTunnel compares tunnels with direct TCP and direct TLS on the same machine in the same
// run, all ends in this process.
func BenchmarkTunnel(b *testing.B) {
	tunneltest.RunBenchmark(b, tunneltest.DirectTCP(), tunneltest.DirectTLS(),
		tunneltest.Path{Name: "native", Open: dialNative},
		tunneltest.Path{Name: "native-upgraded", Open: dialUpgraded},
		// The limit of a session between gateways is fixed.
		tunneltest.Path{Name: "native-relayed", Open: dialRelayed, Most: 4_000},
	)
}
