// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"context"
	"errors"
	"net"
	"testing"

	"fleetgate.io/fleetgate/pkg/tunnel/tunneltest"
)

// TestTransport runs the common tests of all transports.
func TestTransport(t *testing.T) {
	const many = 2000
	t.Run("gateway to our agent", func(t *testing.T) {
		tunneltest.RunTransport(t, tunneltest.Transport{Connect: throughGateway, Many: many})
	})
	t.Run("HTTP CONNECT to our agent", func(t *testing.T) {
		tunneltest.RunTransport(t, tunneltest.Transport{Connect: throughConnect, Many: many / 10, NoReset: true})
	})
}

// throughGateway cuts and kills the agent's connection.
func throughGateway(t *testing.T, targets ...string) (tunneltest.Dial, *tunneltest.Link) {
	g, link := linked(t, gatewayOptions{}, targets)
	return func(ctx context.Context, address string) (net.Conn, error) {
		return g.registry.DialMember(ctx, "m", address)
	}, link
}

// throughConnect uses both listeners.
func throughConnect(t *testing.T, targets ...string) (tunneltest.Dial, *tunneltest.Link) {
	g, link := linked(t, gatewayOptions{frontends: func(o *FrontendServerOptions) {
		o.Domain = "fleet.example"
		o.Allow = mustAllow(t, targets...)
	}}, targets)
	config := g.clientTLS(g.frontendCA.issue(t, "root"))
	config.ServerName = "m.fleet.example"
	return func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := connectTo(ctx, g.frontendPort, config, address, "")
		if err != nil && ctx.Err() != nil {
			err = errors.Join(err, context.Cause(ctx))
		}
		return conn, err
	}, link
}

// linked is a gateway and our agent with a link between them.
func linked(t *testing.T, o gatewayOptions, targets []string) (*gateway, *tunneltest.Link) {
	g := startGateway(t, o)
	link := tunneltest.NewLink(t, g.agentPort)
	g.join(t, "m", func(c *Connector) {
		c.Address = link.Address()
		c.Allow = mustAllow(t, targets...)
	})
	return g, link
}
