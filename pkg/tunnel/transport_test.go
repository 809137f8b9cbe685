// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/tunneltest"
)

func TestTransport(t *testing.T) {
	for name, connect := range map[string]func(*testing.T, ...string) (tunneltest.Dial, *tunneltest.Link){
		"through an upgraded request": func(t *testing.T, targets ...string) (tunneltest.Dial, *tunneltest.Link) {
			r, link := connectUpgraded(t, targets)
			return func(ctx context.Context, address string) (net.Conn, error) {
				return r.Dial(ctx, "one", "tcp", address)
			}, link
		},
		"through the gateway's own port": func(t *testing.T, targets ...string) (tunneltest.Dial, *tunneltest.Link) {
			r, link := connectPort(t, targets)
			return func(ctx context.Context, address string) (net.Conn, error) {
				return r.Dial(ctx, "one", "tcp", address)
			}, link
		},
	} {
		t.Run(name, func(t *testing.T) {
			tunneltest.RunTransport(t, tunneltest.Transport{Connect: connect})
		})
	}
}

// connectUpgraded accepts an agent as the hub's API server does.
func connectUpgraded(t testing.TB, targets []string) (*tunnel.Registry, *tunneltest.Link) {
	t.Helper()
	r := tunneltest.NewRegistry(t, tunnel.Options{})
	server := httptest.NewUnstartedServer(r.UpgradeHandler("one"))
	server.StartTLS()
	t.Cleanup(server.Close)
	link := tunneltest.NewLink(t, server.Listener.Addr().String())
	roots := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	hub := &tunnel.HubDialer{
		URL:   "https://" + link.Address() + "/",
		TLS:   &tls.Config{RootCAs: roots, ServerName: "example.com"},
		Token: func(context.Context) (string, error) { return "", nil },
	}
	joinAgent(t, r, hub.Dial, targets)
	return r, link
}

func connectPort(t testing.TB, targets []string) (*tunnel.Registry, *tunneltest.Link) {
	t.Helper()
	r := tunneltest.NewRegistry(t, tunnel.Options{})
	ca := newAuthority(t)
	link := tunneltest.NewLink(t, startPort(t, r, ca, func(*tunnel.Port) {}))
	joinAgent(t, r, portDialer(link.Address(), "/tunnels/one", ca.pool(), "good").Dial, targets)
	return r, link
}

// joinAgent connects a member whose agent pipes to targets, and waits for it.
func joinAgent(t testing.TB, r *tunnel.Registry, dial func(context.Context) (net.Conn, error), targets []string) {
	t.Helper()
	joinServing(t, r, dial, addressed(targets))
}

// addressed are targets whose names are their addresses.
func addressed(targets []string) map[string]tunnel.Target {
	table := map[string]tunnel.Target{}
	for _, address := range targets {
		table[address] = tunnel.TCP(address)
	}
	return table
}

// joinOver connects an agent of member "one" through a link that can be cut, and waits until the
// member is connected.
func joinOver(t testing.TB, r *tunnel.Registry, targets map[string]tunnel.Target) *tunneltest.Link {
	t.Helper()
	agents := tunneltest.Serve(t, "127.0.0.1", func(c *net.TCPConn) { _ = r.Serve(context.Background(), "one", c) })
	link := tunneltest.NewLink(t, agents)
	joinServing(t, r, func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", link.Address())
	}, targets)
	return link
}

func joinServing(t testing.TB, r *tunnel.Registry, dial func(context.Context) (net.Conn, error), targets map[string]tunnel.Target) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	connector := &tunnel.Connector{Member: "one", Dial: dial, Targets: targets}
	go func() { ended <- connector.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	tunneltest.Eventually(t, "the member is connected", func() bool { return r.Connected("one") })
}
