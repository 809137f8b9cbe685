// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/tunneltest"
)

func TestRegistry_LimitsSessionsOfAMember(t *testing.T) {
	r := tunneltest.NewRegistry(t, tunnel.Options{MaxSessionsPerMember: 1})
	tunneltest.Join(t, r, "one", map[string]tunnel.Target{"a": says("first")})
	gateway, agent := net.Pipe()
	if err := r.Serve(t.Context(), "one", gateway); !errors.Is(err, tunnel.ErrTooManySessions) {
		t.Errorf("the second session: %v, want ErrTooManySessions", err)
	}
	if _, err := agent.Read(make([]byte, 1)); err == nil {
		t.Error("the second connection was left open")
	}
	if got := hear(t, r, "one", "a"); got != "first" {
		t.Errorf("heard %q", got)
	}
}

func TestRegistry_LimitsStreamsOnBothSides(t *testing.T) {
	for name, bounds := range map[string]struct{ gateway, agent int }{
		"by the gateway": {2, 10},
		"by the agent":   {10, 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := tunneltest.NewRegistry(t, tunnel.Options{MaxStreamsPerSession: bounds.gateway})
			gateway, agent := net.Pipe()
			go func() { _ = r.Serve(t.Context(), "one", gateway) }()
			up := make(chan struct{})
			connector := &tunnel.Connector{
				Member: "one", Targets: map[string]tunnel.Target{"echo": echo}, MaxStreams: bounds.agent,
				Dial:          func(context.Context) (net.Conn, error) { return agent, nil },
				OnStateChange: func(s tunnel.State) { close(up) },
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- connector.Run(ctx) }()
			defer func() { cancel(); <-ended }()
			<-up
			eventually(t, func() bool { return r.Connected("one") })

			var conns []net.Conn
			for range 2 {
				conn, err := r.DialMember(t.Context(), "one", "echo")
				if err != nil {
					t.Fatal(err)
				}
				conns = append(conns, conn)
			}
			_, err := r.DialMember(t.Context(), "one", "echo")
			var refused *tunnel.RefusedError
			if !errors.As(err, &refused) || refused.Code != tunnel.Busy {
				t.Errorf("the third stream: %v, want Busy", err)
			}
			_ = conns[0].Close()
			_ = conns[0].Close()
			eventually(t, func() bool {
				conn, err := r.DialMember(t.Context(), "one", "echo")
				if err == nil {
					_ = conn.Close()
				}
				return err == nil
			})
			_ = conns[1].Close()
		})
	}
}
