// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// twoGateways is an agent with sessions to two gateways, both behind one address of their ports.
type twoGateways struct {
	registries [2]*Registry
	// turn is the gateway that the hub leads to next.
	turn atomic.Int32
	// direct opens the port, if that is announced.
	direct func(context.Context) (net.Conn, error)
	port   atomic.Pointer[PortInfo]
	serves sync.WaitGroup
}

// startTwoGateways returns when the agent has a session to each gateway.
func startTwoGateways(t *testing.T) *twoGateways {
	t.Helper()
	g := &twoGateways{}
	for i := range g.registries {
		r, err := NewRegistry(Options{Info: func() Info {
			return Info{Replica: []string{"gateway-1", "gateway-2"}[i], Replicas: 2, Port: g.port.Load()}
		}})
		if err != nil {
			t.Fatal(err)
		}
		g.registries[i] = r
	}
	connector := &Connector{
		Member: "one", Sessions: 2, Random: func() float64 { return 0 },
		Targets: map[string]Target{"echo": func(context.Context) (Handler, error) {
			return func(_ context.Context, stream net.Conn) error {
				_, err := io.Copy(stream, stream)
				return err
			}, nil
		}},
		Dial:   func(context.Context) (net.Conn, error) { return g.serve(int(g.turn.Add(1)) % 2), nil },
		Direct: func(ctx context.Context, _ PortInfo) (net.Conn, error) { return g.direct(ctx) },
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- connector.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		g.serves.Wait()
	})
	g.await(t, "a session to each gateway", func() bool { return g.sessions(0) == 1 && g.sessions(1) == 1 })
	return g
}

func (g *twoGateways) serve(i int) net.Conn {
	gateway, agent := net.Pipe()
	g.serves.Go(func() { _ = g.registries[i].Serve(context.Background(), "one", gateway) })
	return agent
}

// sessions is the number of sessions that dials find.
func (g *twoGateways) sessions(i int) (n int) {
	for _, s := range g.registries[i].sessions("one") {
		if !g.registries[i].isRetired(s) {
			n++
		}
	}
	return n
}

// await lets time pass until done is true.
func (g *twoGateways) await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for began := time.Now(); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("there is not %s: %d and %d sessions", what, g.sessions(0), g.sessions(1))
		}
	}
}

// echoes fails the test if the connection was lost.
func echoes(t *testing.T, conn net.Conn) {
	t.Helper()
	const ping = "ping"
	if _, err := io.WriteString(conn, ping); err != nil {
		t.Errorf("writing: %v", err)
		return
	}
	got := make([]byte, len(ping))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != ping {
		t.Errorf("read %q, %v", got, err)
	}
}

// The gateway uses a new session at once, before the agent knows which gateway that is.
func TestConnector_ServesStreamsOfSessionThatItDoesNotKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := startTwoGateways(t)
		streams := make(chan net.Conn, 2)
		g.direct = func(ctx context.Context) (net.Conn, error) {
			// The port leads to the first gateway only, so one of the two sessions cannot move there.
			before := len(g.registries[0].sessions("one"))
			agent := g.serve(0)
			for len(g.registries[0].sessions("one")) <= before {
				if ctx.Err() != nil {
					_ = agent.Close()
					return nil, ctx.Err() // The test has ended.
				}
				time.Sleep(10 * time.Millisecond)
			}
			conn, err := g.registries[0].DialEagerly(ctx, "one", "echo")
			if err != nil {
				return nil, err
			}
			select {
			case streams <- conn:
			default:
				_ = conn.Close()
			}
			return agent, nil
		}
		g.port.Store(&PortInfo{Address: "gateway:8091", CA: "-", ServerName: "gateway"})
		for _, r := range g.registries {
			r.SendInfoAll()
		}
		for range cap(streams) {
			conn := <-streams
			time.Sleep(5 * time.Second)
			echoes(t, conn)
			_ = conn.Close()
		}
	})
}

// The load balancer leads a session that should be replaced to the gateway of the other one.
func TestConnector_KeepsSessionUntilItsReplacementIsSuitable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := startTwoGateways(t)
		stream, err := g.registries[0].DialMember(t.Context(), "one", "echo")
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		var lost atomic.Bool
		defer g.registries[0].Subscribe(func(_ string, connected bool) { lost.Store(lost.Load() || !connected) })()
		g.turn.Store(0) // the next one is the second gateway
		first := g.registries[0].sessions("one")[0]
		first.Drain()
		g.await(t, "another session at the first gateway", func() bool {
			now := g.registries[0].sessions("one")
			return len(now) > 0 && now[0] != first
		})
		if lost.Load() {
			t.Error("the first gateway had no session for a while")
		}
		g.await(t, "one session to each gateway", func() bool { return g.sessions(0) == 1 && g.sessions(1) == 1 })
		echoes(t, stream)
		if !g.registries[0].isRetired(first) {
			t.Error("dials use the session that was replaced")
		}
	})
}
