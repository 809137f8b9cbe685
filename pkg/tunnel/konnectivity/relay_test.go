// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/tunneltest"
)

// link lets gateway g forward dials to another one, until the end of the test.
func (g *gateway) link(t *testing.T, to *gateway) {
	t.Helper()
	ca := newAuthority(t, "gateways")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	peersOf := func(of *gateway, name string) *tunnel.Peers {
		certificate := ca.issue(t, name)
		return tunnel.NewPeers(of.registry, tunnel.PeerOptions{
			Name: name, Certificate: func() (*tls.Certificate, error) { return &certificate, nil }, Roots: ca.pool, ServerName: "localhost",
		})
	}
	addresses := make(chan []tunnel.Peer, 1)
	addresses <- []tunnel.Peer{{Address: listener.Addr().String(), Serving: true}}
	serving, linking := peersOf(to, "gateway-2"), peersOf(g, "gateway-1")
	running.Go(func() { _ = serving.Serve(ctx, listener) })
	running.Go(func() { _ = linking.Run(ctx, addresses) })
}

// The frontend connects to a gateway without an agent of the member.
func TestRelay_ForwardsDialToGatewayWithAgent(t *testing.T) {
	one, two := startGateway(t, gatewayOptions{}), startGateway(t, gatewayOptions{})
	one.link(t, two)
	leave := two.join(t, "m", toAPIServer(startTCP(t, "tcp", "127.0.0.1:0", echo)))
	reachable := func() bool { return one.registry.Reachable("m") }
	eventually(t, "the first gateway has heard of the agent", reachable)

	conn, err := one.connectDialer(t, "root", "m:443")(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const bytes = 4 << 20
	var writing sync.WaitGroup
	writing.Go(func() { _, _ = io.Copy(struct{ io.Writer }{conn}, &pattern{n: bytes}) })
	if n, err := io.CopyN(&pattern{}, conn, bytes); err != nil {
		t.Errorf("read %d bytes, then %v", n, err)
	}
	writing.Wait()

	var refused *tunnel.RefusedError
	if _, err := one.registry.DialMember(t.Context(), "m", "10.0.0.1:22"); !errors.As(err, &refused) || refused.Code != tunnel.UnknownTarget {
		t.Errorf("a target that its agent does not dial: %v", err)
	}
	_ = conn.Close()
	leave()
	eventually(t, "the first gateway has heard that the agent left", func() bool { return !reachable() })
	if _, err := one.registry.DialMember(t.Context(), "m", tunnel.APIServer); !tunnel.IsNotConnected(err) {
		t.Errorf("once its agent has left: %v", err)
	}
}

func TestRelay_ForwardsDialToUpstreamAgent(t *testing.T) {
	one, two := startGateway(t, gatewayOptions{}), startGateway(t, gatewayOptions{})
	one.link(t, two)
	agent := two.upstream(t, "m")
	eventually(t, "the first gateway has heard of the agent", func() bool { return one.registry.Reachable("m") })
	dialed := one.dialing(t.Context(), "m")
	agent.establish(1)
	conn := (<-dialed).must(t)
	agent.send(dataPacket(1, []byte("hello")))
	expectBytes(t, conn, "hello")
	agent.send(closeRsp(1))
	if n, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("after the agent's close: %d bytes, %v", n, err)
	}
	// A refusal of the agent is final: no other agent is asked.
	dialed = one.dialing(t.Context(), "m")
	var dial *client.Packet
	for dial == nil {
		if p := agent.receive(); p.Type == client.PacketType_DIAL_REQ {
			dial = p
		}
	}
	agent.send(dialRsp(dial.GetDialRequest().Random, 0, "no route"))
	if r := <-dialed; !tunnel.IsRefused(r.err) {
		t.Errorf("a dial that the agent refused: %v", r.err)
	}
}

// The test closes the registry that both protocols share, as a stopping gateway does.
func TestRelay_StoppingGatewaySendsAgentsElsewhereAndFinishesStreams(t *testing.T) {
	g := startGateway(t, gatewayOptions{})
	g.join(t, "m", toAPIServer(startTCP(t, "tcp", "127.0.0.1:0", echo)))
	conn := g.mustDial(t, "m")
	closed := make(chan struct{})
	go func() { defer close(closed); _ = g.registry.Close(t.Context()) }()
	eventually(t, "no dial is taken", func() bool {
		early, err := g.registry.DialMember(t.Context(), "m", tunnel.APIServer)
		if err == nil {
			_ = early.Close()
		}
		return tunnel.IsNotConnected(err)
	})
	if _, err := conn.Write([]byte("still")); err != nil {
		t.Fatal(err)
	}
	expectBytes(t, conn, "still")
	select {
	case <-closed:
		t.Error("the gateway has ended while a stream was open")
	default:
	}
	_ = conn.Close()
	<-closed
	eventually(t, "the agent's streams have ended", func() bool { return len(g.agents.sessionsOf("m")) == 0 })
}

// A member may have an agent of each kind. The native one is asked first, also for targets that
// both serve.
func TestRegistry_PrefersNativeTunnel(t *testing.T) {
	const only = "10.0.0.1:80"
	g := startGateway(t, gatewayOptions{agents: func(o *AgentServerOptions) { o.Allow = mustAllow(t, only) }})
	native := func(ctx context.Context) (tunnel.Handler, error) {
		return func(_ context.Context, stream net.Conn) error {
			_, err := io.WriteString(stream, "native")
			return err
		}, nil
	}
	tunneltest.Join(t, g.registry, "m", map[string]tunnel.Target{tunnel.APIServer: native, tunnel.Agent: native})
	go g.upstream(t, "m").answerAll()
	eventually(t, "the registry knows the other agent too", func() bool {
		conn, err := g.registry.DialMember(t.Context(), "m", only)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	for _, target := range []string{tunnel.APIServer, tunnel.Agent} {
		conn, err := g.registry.DialMember(t.Context(), "m", target)
		if err != nil {
			t.Fatal(err)
		}
		expectBytes(t, conn, "native")
		_ = conn.Close()
	}
}
