// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/tunneltest"
)

// gateways are the backends of a Service, used in turn, while they are up.
type gateways struct {
	turn atomic.Int32

	// mu guards the following fields.
	mu  sync.Mutex
	all []*upGateway
}

type upGateway struct {
	*tunnel.Registry
	replicas *atomic.Int32
	up       bool
	conns    []net.Conn
}

func newGateways(t *testing.T, names ...string) *gateways {
	g := &gateways{}
	replicas := &atomic.Int32{}
	replicas.Store(int32(len(names)))
	for _, name := range names {
		r := tunneltest.NewRegistry(t, tunnel.Options{Info: func() tunnel.Info {
			return tunnel.Info{Replica: name, Replicas: int(replicas.Load())}
		}})
		g.all = append(g.all, &upGateway{Registry: r, replicas: replicas, up: true})
	}
	return g
}

func (g *gateways) dial(context.Context) (net.Conn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for range g.all {
		one := g.all[int(g.turn.Add(1))%len(g.all)]
		if one.up {
			gateway, agent := net.Pipe()
			one.conns = append(one.conns, agent)
			go func() { _ = one.Serve(context.Background(), "one", gateway) }()
			return agent, nil
		}
	}
	return nil, net.ErrClosed
}

// kill stops a gateway, and the others notice; revive restarts it.
func (g *gateways) kill(i int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all[i].up = false
	g.all[i].replicas.Add(-1)
	for _, conn := range g.all[i].conns {
		_ = conn.Close()
	}
	for _, other := range g.all {
		other.SendInfoAll()
	}
}

func (g *gateways) revive(i int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all[i].up = true
	g.all[i].replicas.Add(1)
	for _, other := range g.all {
		other.SendInfoAll()
	}
}

func TestConnector_KeepsTunnelsToTwoGateways(t *testing.T) {
	g := newGateways(t, "gateway-1", "gateway-2", "gateway-3")
	holds := func() (n int) {
		for _, one := range g.all {
			if one.Connected("one") {
				n++
			}
		}
		return n
	}
	var down atomic.Int32
	connector := &tunnel.Connector{
		Member: "one", Sessions: 2, Dial: g.dial, Targets: map[string]tunnel.Target{"echo": echo},
		Random: func() float64 { return 0 },
		OnStateChange: func(s tunnel.State) {
			if !s.Connected {
				down.Add(1)
			}
		},
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- connector.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	tunneltest.Eventually(t, "two gateways hold the member", func() bool { return holds() == 2 })
	// They know of a session before the agent has taken it into use.
	for _, one := range g.all {
		if one.Connected("one") {
			conn, err := one.DialMember(t.Context(), "one", "echo")
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.Close()
		}
	}

	first := 0
	for !g.all[first].Connected("one") {
		first++
	}
	g.kill(first)
	tunneltest.Eventually(t, "two of the others hold it", func() bool { return !g.all[first].Connected("one") && holds() == 2 })
	if n := down.Load(); n != 0 {
		t.Errorf("the agent said %d times that it is not connected", n)
	}
	second := (first + 1) % 3
	g.kill(second)
	last := (first + 2) % 3
	tunneltest.Eventually(t, "the last one holds it", func() bool { return g.all[last].Connected("one") && holds() == 1 })
	g.revive(second)
	tunneltest.Eventually(t, "two hold it again", func() bool { return holds() == 2 })
}

func TestConnector_KeepsOneTunnelToASingleGateway(t *testing.T) {
	g := newGateways(t, "gateway-1")
	connector := &tunnel.Connector{
		Member: "one", Sessions: 2, Dial: g.dial, Targets: map[string]tunnel.Target{"echo": echo},
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- connector.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	tunneltest.Eventually(t, "the gateway holds the member", func() bool { return g.all[0].Connected("one") })
	pingPong(t, dialEcho(t, g.all[0].Registry))
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := len(g.all[0].conns); n != 1 {
		t.Errorf("%d connections, want one", n)
	}
}

// Two gateways share the port's one address, and it leads to the wrong one for a while. The session
// through the hub stays in the meantime.
func TestConnector_KeepsHubSessionWhileSearchingPort(t *testing.T) {
	g := newGateways(t, "gateway-1", "gateway-2")
	var told atomic.Pointer[tunnel.PortInfo]
	for i, one := range g.all {
		one.Registry = tunneltest.NewRegistry(t, tunnel.Options{Info: func() tunnel.Info {
			return tunnel.Info{Replica: []string{"gateway-1", "gateway-2"}[i], Replicas: 2, Port: told.Load()}
		}})
	}
	to := func(i int) net.Conn {
		gateway, agent := net.Pipe()
		go func() { _ = g.all[i].Serve(context.Background(), "one", gateway) }()
		return agent
	}
	const wrong = 4
	var asked, atSecond atomic.Int32
	connector := &tunnel.Connector{
		Member: "one", Sessions: 2, Dial: g.dial, Targets: map[string]tunnel.Target{"echo": echo},
		Direct: func(context.Context, tunnel.PortInfo) (net.Conn, error) {
			if asked.Add(1) <= wrong {
				return to(0), nil
			}
			atSecond.Add(1)
			return to(1), nil
		},
		Random: func() float64 { return 0 },
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- connector.Run(ctx) }()
	tunneltest.Eventually(t, "both gateways hold the member", func() bool {
		return g.all[0].Connected("one") && g.all[1].Connected("one")
	})
	var lost atomic.Bool
	defer g.all[1].Subscribe(func(_ string, connected bool) {
		if !connected {
			lost.Store(true)
		}
	})()
	told.Store(&tunnel.PortInfo{Address: "gateway:8091", CA: "-", ServerName: "gateway"})
	for _, one := range g.all {
		one.SendInfoAll()
	}
	tunneltest.Eventually(t, "the second gateway's session has moved to the port", func() bool {
		return atSecond.Load() > 0 && g.all[0].Connected("one") && g.all[1].Connected("one")
	})
	if lost.Load() || asked.Load() <= wrong {
		t.Error("the second gateway had no session for a while")
	}
	cancel()
	<-ended
}
