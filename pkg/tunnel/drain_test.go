// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/tunneltest"
)

// pingPong checks that a connection to echo works.
func pingPong(t *testing.T, conn net.Conn) {
	t.Helper()
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Fatalf("writing: %v", err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 5)); err != nil {
		t.Fatalf("reading: %v", err)
	}
}

func dialEcho(t *testing.T, r *tunnel.Registry) net.Conn {
	t.Helper()
	conn, err := r.DialMember(t.Context(), "one", "echo")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// startAgent runs an agent of member one; dials counts its attempts.
func startAgent(t *testing.T, r *tunnel.Registry, adjust func(*tunnel.Connector)) (stop func(), dials *atomic.Int32) {
	t.Helper()
	dials = &atomic.Int32{}
	connector := &tunnel.Connector{
		Member:  "one",
		Targets: map[string]tunnel.Target{"echo": echo},
		Dial: func(context.Context) (net.Conn, error) {
			dials.Add(1)
			gateway, agent := net.Pipe()
			go func() { _ = r.Serve(context.Background(), "one", gateway) }()
			return agent, nil
		},
		Random: func() float64 { return 0 },
	}
	adjust(connector)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = connector.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	tunneltest.Eventually(t, "the member is connected", func() bool { return r.Connected("one") })
	return func() { cancel(); <-ended }, dials
}

func TestRenew_AgentMovesWithoutCuttingStreams(t *testing.T) {
	r := tunneltest.NewRegistry(t, tunnel.Options{})
	_, dials := startAgent(t, r, func(*tunnel.Connector) {})
	before := dialEcho(t, r)
	r.Renew()
	tunneltest.Eventually(t, "the agent has opened a new session", func() bool { return dials.Load() == 2 })
	pingPong(t, before)
	pingPong(t, dialEcho(t, r))
	_ = before.Close()
	// With its last stream the old session ends, and the new one continues to serve.
	pingPong(t, dialEcho(t, r))
	if !r.Connected("one") {
		t.Error("the member is not connected")
	}
}

func TestRenew_MemberStaysReachableWhileAgentMoves(t *testing.T) {
	r := tunneltest.NewRegistry(t, tunnel.Options{})
	_, dials := startAgent(t, r, func(*tunnel.Connector) {})
	r.Renew()
	for dials.Load() < 2 {
		conn, err := r.DialMember(t.Context(), "one", "echo")
		if err != nil {
			t.Fatalf("while it moves: %v", err)
		}
		pingPong(t, conn)
		_ = conn.Close()
	}
}

// When gateways of 2,000 members got another certificate on a busy hub, an agent whose new tunnel
// could not be established at once counted as disconnected, although the previous tunnel still
// worked.
func TestRenew_AgentThatCannotMoveYetStaysConnected(t *testing.T) {
	r := tunneltest.NewRegistry(t, tunnel.Options{})
	states := make(chan tunnel.State, 100)
	var session net.Conn
	_, dials := startAgent(t, r, func(c *tunnel.Connector) {
		serve, refuse := c.Dial, false
		c.OnStateChange = func(s tunnel.State) { states <- s }
		c.Dial = func(ctx context.Context) (net.Conn, error) {
			conn, err := serve(ctx)
			if refuse {
				_ = conn.Close()
				return nil, errors.New("the hub is busy")
			}
			session, refuse = conn, true
			return conn, err
		}
	})
	if s := <-states; !s.Connected {
		t.Fatalf("the first state: %+v", s)
	}
	r.Renew()
	tunneltest.Eventually(t, "the agent has tried twice", func() bool { return dials.Load() >= 3 })
	select {
	case s := <-states:
		t.Errorf("state change while the previous session continues: %+v", s)
	default:
	}
	pingPong(t, dialEcho(t, r))

	_ = session.Close()
	if s := <-states; s.Connected || s.Reason == nil {
		t.Errorf("once it has ended: %+v, want a reason why nothing is connected", s)
	}
}

func TestConnector_StoppingAgentFinishesStreamsAndRefusesNewOnes(t *testing.T) {
	r := tunneltest.NewRegistry(t, tunnel.Options{})
	stop, _ := startAgent(t, r, func(c *tunnel.Connector) { c.DrainTimeout = time.Minute })
	conn := dialEcho(t, r)
	ended := make(chan struct{})
	go func() { defer close(ended); stop() }()
	tunneltest.Eventually(t, "the registry has heard of it", func() bool { return !r.Connected("one") })
	_, err := r.DialMember(t.Context(), "one", "echo")
	if !errors.Is(err, tunnel.ErrNotConnected) || !errors.Is(err, tunnel.ErrDraining) {
		t.Errorf("a dial: %v, want ErrNotConnected and ErrDraining", err)
	}
	pingPong(t, conn)
	_ = conn.Close()
	<-ended
}

func TestConnector_StoppingAgentWaitsOnlyForDrainTimeout(t *testing.T) {
	r := tunneltest.NewRegistry(t, tunnel.Options{})
	stop, _ := startAgent(t, r, func(c *tunnel.Connector) { c.DrainTimeout = 10 * time.Millisecond })
	conn := dialEcho(t, r)
	stop()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, tunnel.ErrSessionClosed) {
		t.Errorf("the stream that did not end: %v, want ErrSessionClosed", err)
	}
}

func TestClose_SendsAgentsToOtherGateways(t *testing.T) {
	old, other := tunneltest.NewRegistry(t, tunnel.Options{}), tunneltest.NewRegistry(t, tunnel.Options{})
	var current atomic.Pointer[tunnel.Registry]
	current.Store(old)
	startAgent(t, old, func(c *tunnel.Connector) {
		c.Dial = func(context.Context) (net.Conn, error) {
			gateway, agent := net.Pipe()
			r := current.Load()
			go func() { _ = r.Serve(context.Background(), "one", gateway) }()
			return agent, nil
		}
	})
	conn := dialEcho(t, old)
	current.Store(other)
	closed := make(chan struct{})
	go func() { defer close(closed); _ = old.Close(t.Context()) }()
	tunneltest.Eventually(t, "the agent is at the other gateway", func() bool { return other.Connected("one") })
	pingPong(t, conn)
	pingPong(t, dialEcho(t, other))
	_ = conn.Close()
	<-closed
}

func TestDialEagerly_WritesBeforeTheResponse(t *testing.T) {
	reach, released := make(chan struct{}), make(chan struct{})
	r := tunneltest.Connect(t, "one", map[string]tunnel.Target{
		"slow": func(ctx context.Context) (tunnel.Handler, error) {
			close(reach)
			<-released
			return echo(ctx)
		},
		"no": refuses(&tunnel.RefusedError{Code: tunnel.Unreachable, Message: "it is unreachable"}),
	})
	conn, err := r.DialEagerly(t.Context(), "one", "slow")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	<-reach
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Fatal(err)
	}
	// A read that times out while it waits for the response loses nothing.
	_ = conn.SetReadDeadline(time.Now())
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Fatal("something was read before the answer")
	}
	_ = conn.SetReadDeadline(time.Time{})
	close(released)
	got := make([]byte, 5)
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "hello" {
		t.Errorf("read %q, %v", got, err)
	}

	refused, err := r.DialEagerly(t.Context(), "one", "no")
	if err != nil {
		t.Fatal(err)
	}
	defer refused.Close()
	for range 2 {
		if _, err := refused.Read(make([]byte, 1)); !tunnel.IsRefused(err) {
			t.Errorf("reading: %v, want the refusal", err)
		}
	}
	if _, err := r.DialEagerly(t.Context(), "two", "no"); !tunnel.IsNotConnected(err) {
		t.Errorf("unreachable member: %v, want ErrNotConnected", err)
	}
}

func TestDial_SupportsOnlyTCP(t *testing.T) {
	r := tunneltest.Connect(t, "one", map[string]tunnel.Target{"echo": echo})
	for _, network := range []string{"udp", "unix", ""} {
		if _, err := r.Dial(t.Context(), "one", network, "echo"); err == nil {
			t.Errorf("network %q was dialed", network)
		}
	}
}
