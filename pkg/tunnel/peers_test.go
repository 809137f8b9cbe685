// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/tunneltest"
)

const peerName = "gateway.fleet-system.svc"

// replica is one gateway of several.
type replica struct {
	*tunnel.Registry
	peers     *tunnel.Peers
	address   string
	addresses chan []tunnel.Peer
}

// startReplica runs a gateway's peer port until the end of the test, or stop.
func startReplica(t testing.TB, name string, ca *authority) (r *replica, stop func()) {
	t.Helper()
	return startReplicaOf(t, tunneltest.NewRegistry(t, tunnel.Options{}), name, ca)
}

func startReplicaOf(t testing.TB, registry *tunnel.Registry, name string, ca *authority) (r *replica, stop func()) {
	t.Helper()
	r = &replica{Registry: registry, addresses: make(chan []tunnel.Peer, 1)}
	cert := ca.issue(t, peerName)
	r.peers = tunnel.NewPeers(r.Registry, tunnel.PeerOptions{
		Name: name, Certificate: func() (*tls.Certificate, error) { return &cert, nil }, Roots: ca.pool, ServerName: peerName,
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.address = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- r.peers.Serve(ctx, listener) }()
	go func() { ended <- r.peers.Run(ctx, r.addresses) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Errorf("replica %s ended with %v", name, err)
			}
		}
	}
	t.Cleanup(stop)
	return r, stop
}

func serving(addresses ...string) (peers []tunnel.Peer) {
	for _, address := range addresses {
		peers = append(peers, tunnel.Peer{Address: address, Serving: true})
	}
	return peers
}

// With fewer replicas than there are, agents would keep one session, and requests that reach the
// other replica would fail.
func TestPeers_CountServingGatewaysWithoutLink(t *testing.T) {
	ca := newAuthority(t)
	one, _ := startReplica(t, "gateway-1", ca)
	two, _ := startReplica(t, "gateway-2", ca)
	blocked := closedAddress(t)
	expect := func(replicas, missing int) {
		t.Helper()
		tunneltest.Eventually(t, fmt.Sprintf("there are %d replicas, %d without a link", replicas, missing), func() bool {
			return one.peers.Replicas() == replicas && one.peers.MissingLinks() == missing
		})
	}
	one.addresses <- serving(one.address, two.address, blocked)
	expect(3, 1)
	one.addresses <- append(serving(one.address, two.address), tunnel.Peer{Address: blocked})
	expect(2, 0)
	one.addresses <- serving(one.address, blocked)
	expect(2, 1)
	one.addresses <- serving(one.address)
	expect(1, 0)
}

// closedAddress is an address that nobody serves.
func closedAddress(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func TestPeers_ForwardDialToGatewayWithTunnel(t *testing.T) {
	ca := newAuthority(t)
	one, _ := startReplica(t, "gateway-1", ca)
	two, stopTwo := startReplica(t, "gateway-2", ca)
	leave := tunneltest.Join(t, two.Registry, "member", map[string]tunnel.Target{
		"echo": echo, "no": refuses(errors.New("the target is unreachable")),
	})
	// Its own address is among those of the Service.
	one.addresses <- serving(one.address, two.address)
	tunneltest.Eventually(t, "the member can be reached from the first gateway", func() bool { return one.Reachable("member") })
	if one.Connected("member") || one.peers.Replicas() != 2 {
		t.Errorf("connected here: %v, %d replicas", one.Connected("member"), one.peers.Replicas())
	}
	conn, err := one.DialMember(t.Context(), "member", "echo")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	pingPong(t, conn)
	var refused *tunnel.RefusedError
	if _, err := one.DialMember(t.Context(), "member", "no"); !errors.As(err, &refused) || refused.Code != tunnel.Unreachable {
		t.Errorf("unreachable target: %v, want the agent's own refusal", err)
	}
	if _, err := one.DialMember(t.Context(), "nobody", "echo"); !tunnel.IsNotConnected(err) {
		t.Errorf("a member without a session: %v, want ErrNotConnected", err)
	}

	leave()
	tunneltest.Eventually(t, "the first gateway has heard that the member left", func() bool { return !one.Reachable("member") })
	tunneltest.Join(t, two.Registry, "member", map[string]tunnel.Target{"echo": echo})
	tunneltest.Eventually(t, "the member can be reached again", func() bool { return one.Reachable("member") })
	last, err := one.DialMember(t.Context(), "member", "echo")
	if err != nil {
		t.Fatal(err)
	}
	defer last.Close()
	stopTwo()
	if _, err := last.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("a stream through a gateway that ended: %v, want an error", err)
	}
	tunneltest.Eventually(t, "the first gateway has lost the link", func() bool { return one.peers.MissingLinks() == 1 })
	if _, err := one.DialMember(t.Context(), "member", "echo"); !tunnel.IsNotConnected(err) {
		t.Errorf("after that gateway ended: %v, want ErrNotConnected at once", err)
	}
}

// The first gateway knows only the second, the second only the third, which has the member's
// tunnel.
func TestPeers_RefuseSecondHop(t *testing.T) {
	ca := newAuthority(t)
	one, _ := startReplica(t, "gateway-1", ca)
	two, _ := startReplica(t, "gateway-2", ca)
	three, _ := startReplica(t, "gateway-3", ca)
	two.addresses <- serving(three.address)
	one.addresses <- serving(two.address)
	tunneltest.Join(t, three.Registry, "member", map[string]tunnel.Target{"echo": echo})
	leave := tunneltest.Join(t, two.Registry, "other", map[string]tunnel.Target{"echo": echo})
	defer leave()
	tunneltest.Eventually(t, "the second gateway reaches the member", func() bool { return two.Reachable("member") })
	tunneltest.Eventually(t, "the first gateway hears the second", func() bool { return one.Reachable("other") })
	if one.Reachable("member") {
		t.Error("the second gateway announced a member of the third")
	}
	if _, err := one.DialMember(t.Context(), "member", "echo"); !tunnel.IsNotConnected(err) {
		t.Errorf("over two hops: %v, want ErrNotConnected", err)
	}
}

func TestPeers_RefuseUnknownCertificates(t *testing.T) {
	ca := newAuthority(t)
	one, _ := startReplica(t, "gateway-1", ca)
	tunneltest.Join(t, one.Registry, "member", map[string]tunnel.Target{"echo": echo})
	for name, config := range map[string]*tls.Config{
		"without a certificate":     {},
		"with one of another CA":    {Certificates: []tls.Certificate{newAuthority(t).issue(t, peerName)}},
		"with one of another name":  {Certificates: []tls.Certificate{ca.issue(t, "agent")}},
		"without the peer protocol": {Certificates: []tls.Certificate{ca.issue(t, peerName)}, NextProtos: []string{"h2"}},
	} {
		t.Run(name, func(t *testing.T) {
			config.RootCAs, config.ServerName = ca.pool(), peerName
			if config.NextProtos == nil {
				config.NextProtos = []string{"fleetgate-peer/1"}
			}
			conn, err := tls.Dial("tcp", one.address, config)
			if err != nil {
				return
			}
			defer conn.Close()
			if n, err := conn.Read(make([]byte, 100)); err == nil {
				t.Errorf("an unauthenticated client received %d bytes", n)
			}
		})
	}
}

func TestARelayedConnectionBehavesLikeADirectOne(t *testing.T) {
	tunneltest.RunTransport(t, tunneltest.Transport{Many: 1000, Connect: connectRelayed})
}

// connectRelayed cuts the connection between the agent and its gateway.
func connectRelayed(t *testing.T, targets ...string) (tunneltest.Dial, *tunneltest.Link) {
	ca := newAuthority(t)
	one, _ := startReplica(t, "gateway-1", ca)
	two, _ := startReplica(t, "gateway-2", ca)
	link := joinOver(t, two.Registry, addressed(targets))
	one.addresses <- serving(two.address)
	tunneltest.Eventually(t, "the member can be reached", func() bool { return one.Reachable("one") })
	return func(ctx context.Context, address string) (net.Conn, error) {
		return one.Dial(ctx, "one", "tcp", address)
	}, link
}

// A gateway that closes its registry before its links does not cut relayed streams, and gets no new
// ones.
func TestPeers_StoppingGatewayFinishesRelayedStreams(t *testing.T) {
	ca := newAuthority(t)
	one, _ := startReplica(t, "gateway-1", ca)
	two, stopTwo := startReplica(t, "gateway-2", ca)
	tunneltest.Join(t, two.Registry, "member", map[string]tunnel.Target{"echo": echo})
	one.addresses <- serving(two.address)
	tunneltest.Eventually(t, "the member can be reached from the first gateway", func() bool { return one.Reachable("member") })
	conn, err := one.DialMember(t.Context(), "member", "echo")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	closed := make(chan struct{})
	go func() { defer close(closed); _ = two.Close(t.Context()) }()
	tunneltest.Eventually(t, "the first gateway has heard that the second takes no dials", func() bool { return !one.Reachable("member") })
	pingPong(t, conn)
	select {
	case <-closed:
		t.Error("the second gateway has ended while it carried a stream")
	default:
	}
	_ = conn.Close()
	<-closed
	stopTwo()
}

func TestPeers_TryOtherGatewayForUnknownTarget(t *testing.T) {
	ca := newAuthority(t)
	one, _ := startReplica(t, "gateway-1", ca)
	two, _ := startReplica(t, "gateway-2", ca)
	tunneltest.Join(t, one.Registry, "member", map[string]tunnel.Target{"a": says("here")})
	tunneltest.Join(t, two.Registry, "member", map[string]tunnel.Target{"b": says("there")})
	one.addresses <- serving(two.address)
	tunneltest.Eventually(t, "the gateways are linked", func() bool { return one.peers.Replicas() == 2 })
	tunneltest.Eventually(t, "the other gateway is asked", func() bool {
		conn, err := one.DialMember(t.Context(), "member", "b")
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	for target, want := range map[string]string{"a": "here", "b": "there"} {
		if got := hear(t, one.Registry, "member", target); got != want {
			t.Errorf("target %s: heard %q, want %q", target, got, want)
		}
	}
	var refused *tunnel.RefusedError
	if _, err := one.DialMember(t.Context(), "member", "c"); !errors.As(err, &refused) || refused.Code != tunnel.UnknownTarget {
		t.Errorf("an unknown target: %v", err)
	}
}

// A frozen replica closes no connection: the kernel acknowledges what is sent to it.
func TestPeers_FrozenReplicaDelaysNoDial(t *testing.T) {
	ca := newAuthority(t)
	one, _ := startReplica(t, "gateway-1", ca)
	two, _ := startReplica(t, "gateway-2", ca)
	three, _ := startReplica(t, "gateway-3", ca)
	const both, alone = "member-of-both", "member-of-frozen"
	for _, join := range []struct {
		to     *replica
		member string
	}{{two, both}, {two, alone}, {three, both}} {
		tunneltest.Join(t, join.to.Registry, join.member, map[string]tunnel.Target{"a": says("hello")})
	}
	frozen := tunneltest.NewLink(t, two.address)
	one.addresses <- serving(frozen.Address(), three.address)
	tunneltest.Eventually(t, "both replicas are linked", func() bool {
		return one.peers.Replicas() == 3 && one.Reachable(both) && one.Reachable(alone)
	})
	frozen.Cut()
	for range 8 { // Replicas are tried in random order.
		if got := hear(t, one.Registry, both, "a"); got != "hello" {
			t.Errorf("heard %q", got)
		}
	}
	if _, err := one.DialMember(t.Context(), alone, "a"); !errors.Is(err, tunnel.ErrUnresponsive) || !tunnel.IsNotConnected(err) {
		t.Errorf("dialing: %v, want ErrUnresponsive and ErrNotConnected", err)
	}
	tunneltest.Eventually(t, "the member behind the frozen replica does not respond", func() bool { return !one.Responds(t.Context(), alone) })
	if one.LastSessionChange(alone).IsZero() {
		t.Error("requests on older connections wait for the frozen replica")
	}
	if !one.Responds(t.Context(), both) {
		t.Error("a member counts as silent although one of its two replicas responds")
	}
	frozen.Heal()
	tunneltest.Eventually(t, "the replica is used again", func() bool {
		conn, err := one.DialMember(t.Context(), alone, "a")
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

func TestDialMember_UnresponsiveAgentDelaysNoDial(t *testing.T) {
	r := tunneltest.NewRegistry(t, tunnel.Options{})
	tunneltest.Join(t, r, "one", map[string]tunnel.Target{"a": says("well")})
	link := joinOver(t, r, map[string]tunnel.Target{"a": says("still")})
	eventually(t, func() bool { return hear(t, r, "one", "a") == "still" })
	link.Cut()
	if got := hear(t, r, "one", "a"); got != "well" {
		t.Errorf("heard %q, want the agent that responds", got)
	}
}
