// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/budget"
)

// The tests of this file cover weaknesses of the reference implementation (K1 to K11) that this
// compatible implementation must not have.

// dialing starts a dial to the member's API server.
func (g *gateway) dialing(ctx context.Context, member string) <-chan dialResult {
	result := make(chan dialResult, 1)
	go func() {
		conn, err := g.registry.DialMember(ctx, member, tunnel.APIServer)
		result <- dialResult{conn, err}
	}()
	return result
}

type dialResult struct {
	conn net.Conn
	err  error
}

func (r dialResult) must(t *testing.T) net.Conn {
	t.Helper()
	if r.err != nil {
		t.Fatalf("dialing: %v", r.err)
	}
	t.Cleanup(func() { _ = r.conn.Close() })
	return r.conn
}

func (g *gateway) awaitSessions(t *testing.T, member string, n int) {
	t.Helper()
	eventually(t, "the agents are connected", func() bool {
		return len(g.agents.sessionsOf(member)) == n && g.registry.Connected(member) == (n > 0)
	})
}

func expectBytes(t *testing.T, conn net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		t.Errorf("read %q, then %v; want %q", got, err, want)
	}
}

func TestK1_StreamsOfOneAgentIDDoNotShareConnections(t *testing.T) {
	g := startGateway(t, gatewayOptions{})
	first := g.upstream(t, "m")
	one := g.dialing(t.Context(), "m")
	first.establish(1)
	a := (<-one).must(t)
	second := g.upstream(t, "m") // the same agentID, and IDs that begin at 1 again
	g.awaitSessions(t, "m", 2)
	two := g.dialing(t.Context(), "m")
	second.establish(1)
	b := (<-two).must(t)

	second.send(dataPacket(1, []byte("second")))
	first.send(dataPacket(1, []byte("first!")))
	expectBytes(t, a, "first!")
	expectBytes(t, b, "second")
	second.send(closeRsp(1))
	if _, err := b.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the second connection: %v", err)
	}
	first.send(dataPacket(1, []byte("still")))
	expectBytes(t, a, "still")
}

func TestK2_FrontendReachesOnlyItsOwnConnection(t *testing.T) {
	g := startGateway(t, gatewayOptions{})
	agent := g.upstream(t, "m")
	victim, stranger := g.frontendStream(t, "dialer-m"), g.frontendStream(t, "dialer-m")
	for i, f := range []*upstreamAgent{victim, stranger} {
		f.send(dialReq("tcp", "m:443", int64(i+1)))
		agent.establish(int64(i + 1))
		f.receiveType(client.PacketType_DIAL_RSP)
	}
	// Both know the agent's IDs, which count from one.
	for id := range int64(4) {
		if id != frontendConnID {
			stranger.send(dataPacket(id, []byte("intruder")))
			stranger.send(closeReq(id))
		}
	}
	stranger.send(dataPacket(frontendConnID, []byte("mine")))
	got := agent.receiveType(client.PacketType_DATA)
	if want := dataPacket(2, []byte("mine")); !strings.Contains(got.String(), "mine") || got.GetData().ConnectID != want.GetData().ConnectID {
		t.Errorf("the agent received %s", got)
	}
	victim.send(dataPacket(frontendConnID, []byte("alive")))
	if got := agent.receiveType(client.PacketType_DATA).GetData(); got.ConnectID != 1 || string(got.Data) != "alive" {
		t.Errorf("the agent received %s", got)
	}
}

func TestK3_AgentCannotAnswerDialOfAnother(t *testing.T) {
	g := startGateway(t, gatewayOptions{})
	asked, hostile := g.upstream(t, "m"), g.upstream(t, "n")
	dialed := g.dialing(t.Context(), "m")
	random := asked.receiveType(client.PacketType_DIAL_REQ).GetDialRequest().Random
	hostile.send(dialRsp(random, 1, ""))
	// The answer of another agent's stream is closed, not accepted.
	if got := hostile.receiveType(client.PacketType_CLOSE_REQ).GetCloseRequest().ConnectID; got != 1 {
		t.Errorf("connection %d was closed", got)
	}
	hostile.send(&client.Packet{Type: client.PacketType_DIAL_CLS, Payload: &client.Packet_CloseDial{CloseDial: &client.CloseDial{Random: random}}})
	hostile.send(dialRsp(random, 0, "no"))
	select {
	case r := <-dialed:
		t.Fatalf("the dial ended with %v", r.err)
	default:
	}
	asked.send(dialRsp(random, 5, ""))
	conn := (<-dialed).must(t)
	asked.send(dataPacket(5, []byte("right")))
	expectBytes(t, conn, "right")
}

func TestK4_IdentityDecidesTheMember(t *testing.T) {
	for _, test := range []struct {
		name, user, identifiers string
		member                  string
		refused                 codes.Code
	}{
		{name: "identity alone", user: "agent-m", member: "m"},
		{name: "identifiers that agree, among others", user: "agent-m", identifiers: "host=m&host=m.clusters&ipv4=10.0.0.1&cidr=10.0.0.0/8", member: "m"},
		{name: "identifiers without a host", user: "agent-m", identifiers: "ipv4=10.0.0.1&default-route=true", member: "m"},
		{name: "another member's name", user: "agent-m", identifiers: "host=n", refused: codes.PermissionDenied},
		{name: "one of several members of the identity", user: "agent-m+n", identifiers: "host=n", member: "n"},
		{name: "several members and no choice", user: "agent-m+n", refused: codes.PermissionDenied},
		{name: "an identity without a member", user: "someone", identifiers: "host=m", refused: codes.PermissionDenied},
		{name: "identifiers that are none", user: "agent-m", identifiers: "host=%zz", refused: codes.InvalidArgument},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := startGateway(t, gatewayOptions{})
			md := []string{"agentID", "a"}
			if test.identifiers != "" {
				md = append(md, "agentIdentifiers", test.identifiers)
			}
			_, err := g.connectUpstream(t, g.clientTLS(g.agentCA.issue(t, test.user)), md...)
			if got := status.Code(err); got != test.refused {
				t.Fatalf("connecting: %v", err)
			}
			if test.refused == codes.OK {
				g.awaitMember(t, test.member)
			}
			for _, other := range []string{"m", "n"} {
				if other != test.member && g.registry.Connected(other) {
					t.Errorf("member %q is connected", other)
				}
			}
		})
	}
}

func TestK5_UnansweredDialFailsAlone(t *testing.T) {
	g := startGateway(t, gatewayOptions{})
	agent := g.upstream(t, "m")
	dialed := g.dialing(t.Context(), "m")
	agent.establish(1)
	conn := (<-dialed).must(t)
	ctx, cancel := context.WithCancel(t.Context())
	lost := g.dialing(ctx, "m")
	random := agent.receiveType(client.PacketType_DIAL_REQ).GetDialRequest().Random
	cancel()
	if r := <-lost; !errors.Is(r.err, context.Canceled) {
		t.Errorf("the dial ended with %v", r.err)
	}
	if got := agent.receiveType(client.PacketType_DIAL_CLS).GetCloseDial().Random; got != random {
		t.Errorf("dial %d was closed, not %d", got, random)
	}
	// An agent that does not know DIAL_CLS answers later.
	agent.send(dialRsp(random, 2, ""))
	if got := agent.receiveType(client.PacketType_CLOSE_REQ).GetCloseRequest().ConnectID; got != 2 {
		t.Errorf("connection %d was closed, not 2", got)
	}
	agent.send(dataPacket(1, []byte("alive")))
	expectBytes(t, conn, "alive")
}

// An upstream agent cannot be asked to send less on one connection. The other connections take
// precedence.
func TestK6_SlowFrontendDoesNotBlockOthers(t *testing.T) {
	g := startGateway(t, gatewayOptions{agents: func(o *AgentServerOptions) { o.QueueLimit = 256 << 10 }})
	agent := g.upstream(t, "m")
	one := g.dialing(t.Context(), "m")
	agent.establish(1)
	slow := (<-one).must(t)
	two := g.dialing(t.Context(), "m")
	agent.establish(2)
	victim := (<-two).must(t)
	for range 20 {
		agent.send(dataPacket(1, make([]byte, 64<<10)))
	}
	agent.send(dataPacket(2, []byte("on time")))
	expectBytes(t, victim, "on time")
	if _, err := io.Copy(io.Discard, slow); !errors.Is(err, tunnel.ErrReset) || !strings.Contains(err.Error(), "without flow control") {
		t.Errorf("the slow connection ended with: %v", err)
	}
	for {
		if p := agent.receive(); p.Type == client.PacketType_CLOSE_REQ {
			if p.GetCloseRequest().ConnectID != 1 {
				t.Errorf("the agent was told to close %d", p.GetCloseRequest().ConnectID)
			}
			break
		}
	}
}

// Many slow connections that each stay within their limit would be too much together.
func TestK6_SlowFrontendsAreLimitedTogether(t *testing.T) {
	const unread, each, connections = 1 << 20, 256 << 10, 16
	g := startGateway(t, gatewayOptions{agents: func(o *AgentServerOptions) { o.Unread = unread }})
	agent := g.upstream(t, "m")
	var conns []net.Conn
	for id := int64(1); id <= connections; id++ {
		dialed := g.dialing(t.Context(), "m")
		agent.establish(id)
		conns = append(conns, (<-dialed).must(t))
	}
	go func() {
		for {
			if p := new(client.Packet); agent.stream.RecvMsg(p) != nil {
				return
			}
		}
	}()
	block := make([]byte, 16<<10)
	for range each / len(block) {
		for id := int64(1); id <= connections; id++ {
			agent.send(dataPacket(id, block))
		}
	}
	reset := 0
	for _, conn := range conns {
		if _, err := io.ReadFull(conn, make([]byte, each)); err != nil {
			if !errors.Is(err, tunnel.ErrReset) {
				t.Errorf("a connection ended with %v", err)
			}
			reset++
		}
	}
	if reset == 0 || reset == connections {
		t.Errorf("%d of %d connections were reset", reset, connections)
	}
	for _, conn := range conns {
		_ = conn.Close()
	}
	if used := g.agents.unread.Used(); used != 0 {
		t.Errorf("once all are closed, %d bytes are counted as unread", used)
	}
}

// While it is alone, a slow connection blocks nobody, and gets everything.
func TestK6_LoneSlowFrontendStopsItsSender(t *testing.T) {
	const limit, bytes = 256 << 10, 32 << 20
	g := startGateway(t, gatewayOptions{agents: func(o *AgentServerOptions) { o.QueueLimit = limit }})
	agent := g.upstream(t, "m")
	dialed := g.dialing(t.Context(), "m")
	agent.establish(1)
	slow := (<-dialed).must(t)
	inbox := &g.agents.sessionsOf("m")[0].conn(1).in
	var sending sync.WaitGroup
	sending.Go(func() {
		source := &pattern{n: bytes}
		for block := make([]byte, 64<<10); source.at < bytes; {
			n, _ := source.Read(block)
			agent.send(dataPacket(1, block[:n]))
		}
		agent.send(closeRsp(1))
	})
	eventually(t, "the queue is full", func() bool {
		inbox.mu.Lock()
		defer inbox.mu.Unlock()
		return inbox.queued > limit*3/4
	})
	if n, err := io.Copy(&pattern{}, slow); err != nil || n != bytes {
		t.Errorf("read %d bytes, then %v", n, err)
	}
	sending.Wait()
}

// A dial does not wait for a slow reader that was alone until then.
func TestK6_DialEndsWaitForSlowFrontend(t *testing.T) {
	g := startGateway(t, gatewayOptions{agents: func(o *AgentServerOptions) { o.QueueLimit = 64 << 10 }})
	agent := g.upstream(t, "m")
	dialed := g.dialing(t.Context(), "m")
	agent.establish(1)
	slow := (<-dialed).must(t)
	for range 4 {
		agent.send(dataPacket(1, make([]byte, 64<<10)))
	}
	other := g.dialing(t.Context(), "m")
	agent.establish(2)
	(<-other).must(t)
	if _, err := io.Copy(io.Discard, slow); !errors.Is(err, tunnel.ErrReset) {
		t.Errorf("the slow connection ended with: %v", err)
	}
}

// server behaves like an upstream Konnectivity server as far as an agent can see.
type server struct {
	streams chan *serverStream
}

type serverStream struct {
	grpc.ServerStream
	t    testing.TB
	done chan struct{}
}

func startServer(t testing.TB, info func() serverInfo) (*server, string, *authority) {
	t.Helper()
	ca := newAuthority(t, "upstream")
	certificate := ca.issue(t, "upstream")
	s := &server{streams: make(chan *serverStream, 16)}
	stop := make(chan struct{})
	handler := func(stream grpc.ServerStream) error {
		if err := stream.SendHeader(info().metadata()); err != nil {
			return err
		}
		st := &serverStream{ServerStream: stream, t: t, done: make(chan struct{})}
		s.streams <- st
		select {
		case <-st.done:
		case <-stop:
		case <-stream.Context().Done():
		}
		return nil
	}
	address := serve(t, "", func(ctx context.Context, l net.Listener, _ time.Duration) error {
		server := newGRPCServer(16, agentWindow)
		server.RegisterService(service("AgentService", "Connect", handler), nil)
		connListener := newConnListener(l.Addr())
		var serving sync.WaitGroup
		serving.Go(func() { _ = server.Serve(connListener) })
		config := &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{protocolGRPC}}
		err := accept(ctx, l, config, map[string]func(*tls.Conn){protocolGRPC: func(c *tls.Conn) { connListener.hand(c) }})
		close(stop)
		server.Stop()
		_ = connListener.Close()
		serving.Wait()
		return err
	})
	return s, address, ca
}

// joinServer connects our agent to a server of upstream's that it can verify.
func joinServer(t testing.TB, address string, ca *authority, change func(*Connector)) (leave func()) {
	t.Helper()
	g := &gateway{agentPort: address, serverCA: ca, agentCA: ca}
	return g.join(t, "m", func(c *Connector) {
		c.PingAfter = upstreamPings
		if change != nil {
			change(c)
		}
	})
}

func (s *serverStream) send(p packet) {
	s.t.Helper()
	if err := s.SendMsg(&p); err != nil {
		s.t.Errorf("sending %s: %v", p.kind, err)
	}
}

func (s *serverStream) receive() packet {
	s.t.Helper()
	var p packet
	if err := s.RecvMsg(&p); err != nil {
		s.t.Fatalf("receiving: %v", err)
	}
	return p
}

func (s *serverStream) receiveType(want packetType) packet {
	s.t.Helper()
	p := s.receive()
	if p.kind != want {
		s.t.Fatalf("received %s %q, want %s", p.kind, p.reason, want)
	}
	return p
}

func payloadOf(b []byte) mem.BufferSlice { return mem.BufferSlice{mem.SliceBuffer(b)} }

func oneServer() serverInfo { return serverInfo{id: "s", count: 1} }

func TestK7_SlowTargetDoesNotStopTheAgent(t *testing.T) {
	upstream, address, ca := startServer(t, oneServer)
	release := make(chan struct{})
	defer close(release)
	stuck := startTCP(t, "tcp", "127.0.0.1:0", func(*net.TCPConn) { <-release })
	fine := startTCP(t, "tcp", "127.0.0.1:0", echo)
	joinServer(t, address, ca, func(c *Connector) {
		c.QueueLimit = 256 << 10
		c.Allow = mustAllow(t, stuck, fine)
	})
	s := <-upstream.streams
	s.send(packet{kind: dialRequest, protocol: "tcp", address: stuck, random: 1})
	slow := s.receiveType(dialResponse)
	s.send(packet{kind: dialRequest, protocol: "tcp", address: fine, random: 2})
	victim := s.receiveType(dialResponse)
	// More than the sockets between agent and target hold.
	for range 1000 {
		s.send(packet{kind: data, connID: slow.connID, payload: payloadOf(make([]byte, 64<<10))})
	}
	s.send(packet{kind: data, connID: victim.connID, payload: payloadOf([]byte("on time"))})
	for {
		p := s.receive()
		if p.kind == data {
			if p.connID != victim.connID || string(p.payload.Materialize()) != "on time" {
				t.Errorf("received %q of connection %d", p.payload.Materialize(), p.connID)
			}
			return
		}
		if p.kind != closeResponse || p.connID != slow.connID || p.reason == "" {
			t.Fatalf("received %s of connection %d", p.kind, p.connID)
		}
	}
}

func mustAllow(t testing.TB, addresses ...string) Allow {
	t.Helper()
	allow, err := ParseAllow(addresses)
	if err != nil {
		t.Fatal(err)
	}
	return allow
}

// An agent cannot see a dial that waits behind data for a target that reads nothing.
func TestK7_OnlyTargetDoesNotBlockTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 2 << 10
		l := newMultiplexer(&wire{ctx: t.Context()}, false, false, limit, budget.New(1<<30), &meter{})
		c := newConn(l, 1, addr("m"), addr("gateway"))
		l.add(c)
		began := time.Now()
		for range 2 {
			l.deliver(packet{kind: data, connID: 1, payload: payloadOf(make([]byte, limit))})
		}
		if waited := time.Since(began); waited != stallTime {
			t.Errorf("the stream was held up for %s", waited)
		}
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, tunnel.ErrReset) {
			t.Errorf("the connection ended with %v", err)
		}
	})
}

func TestK8_DataBeforeCloseArrives(t *testing.T) {
	upstream, address, ca := startServer(t, oneServer)
	const bytes = 4 << 20
	got := make(chan int64, 1)
	start := make(chan struct{})
	target := startTCP(t, "tcp", "127.0.0.1:0", func(c *net.TCPConn) {
		<-start
		n, err := io.Copy(&pattern{}, c)
		if err != nil {
			n = -1
		}
		got <- n
	})
	joinServer(t, address, ca, func(c *Connector) { c.Allow = mustAllow(t, target) })
	s := <-upstream.streams
	s.send(packet{kind: dialRequest, protocol: "tcp", address: target, random: 1})
	id := s.receiveType(dialResponse).connID
	source := &pattern{n: bytes}
	for source.at < bytes {
		block := make([]byte, 32<<10)
		n, _ := source.Read(block)
		s.send(packet{kind: data, connID: id, payload: payloadOf(block[:n])})
	}
	s.send(packet{kind: closeRequest, connID: id})
	if p := s.receiveType(closeResponse); p.connID != id {
		t.Errorf("connection %d was closed", p.connID)
	}
	close(start)
	if n := <-got; n != bytes {
		t.Errorf("the target got %d bytes, want %d", n, bytes)
	}
}

func TestK9_UnreadConnectionStaysOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := pairOfLinks(t)
		for range 20 {
			if _, err := there.Write([]byte("waits ")); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour) // the test's own deadline
		got := make([]byte, 120)
		if _, err := io.ReadFull(here, got); err != nil {
			t.Errorf("reading after an hour: %v", err)
		}
		if _, err := here.Write([]byte("still there")); err != nil {
			t.Errorf("writing after an hour: %v", err)
		}
	})
}

func TestK10_ConnectionHasAddressesDeadlinesAndImmediateClose(t *testing.T) {
	g := startGateway(t, gatewayOptions{})
	agent := g.upstream(t, "m") // it never answers a close
	dialed := g.dialing(t.Context(), "m")
	agent.establish(1)
	conn := (<-dialed).must(t)
	if conn.LocalAddr() == nil || conn.RemoteAddr() == nil || conn.RemoteAddr().String() != "m/apiserver" {
		t.Errorf("addresses %v and %v", conn.LocalAddr(), conn.RemoteAddr())
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		t.Errorf("setting a deadline: %v", err)
	}
	agent.send(closeRsp(1))
	eventually(t, "a write after the peer's close fails", func() bool {
		_, err := conn.Write([]byte("x"))
		return err != nil
	})
	dialed = g.dialing(t.Context(), "m")
	random := int64(0)
	for random == 0 {
		if p := agent.receive(); p.Type == client.PacketType_DIAL_REQ {
			random = p.GetDialRequest().Random
		}
	}
	agent.send(dialRsp(random, 2, ""))
	second := (<-dialed).must(t)
	if err := second.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
	if _, err := second.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("reading after the close: %v", err)
	}
}

func TestK11_CertificateOrTokenIsRequired(t *testing.T) {
	if _, err := NewAgentServer(AgentServerOptions{IsAgentOf: isAgentOf, MembersOf: membersOf}); !errors.Is(err, errNoCredentials) {
		t.Errorf("a listener for agents without credentials: %v", err)
	}
	if _, err := NewFrontendServer(FrontendServerOptions{}); !errors.Is(err, errNoCredentials) {
		t.Errorf("a listener for frontends without credentials: %v", err)
	}
	g := startGateway(t, gatewayOptions{})
	certificate := g.agentCA.issue(t, "agent-m")
	for _, test := range []struct {
		name         string
		certificates []tls.Certificate
		token        []string
		want         codes.Code
	}{
		{name: "a certificate", certificates: []tls.Certificate{certificate}},
		{name: "a token", token: []string{"Bearer agents:agent-m"}},
		{name: "neither", want: codes.Unauthenticated},
		{name: "a token of nobody", token: []string{"Bearer nobody"}, want: codes.Unauthenticated},
		{name: "no bearer token", token: []string{"Basic agents:agent-m"}, want: codes.Unauthenticated},
		{name: "two tokens", token: []string{"Bearer agents:agent-m", "Bearer agents:agent-n"}, want: codes.Unauthenticated},
	} {
		t.Run(test.name, func(t *testing.T) {
			md := []string{"agentID", "a"}
			for _, token := range test.token {
				md = append(md, "authorization", token)
			}
			_, err := g.connectUpstream(t, g.clientTLS(test.certificates...), md...)
			if got := status.Code(err); got != test.want {
				t.Errorf("connecting: %v", err)
			}
		})
	}
}

func TestCredentials_AreInvalidAtTheOtherListener(t *testing.T) {
	g := startGateway(t, gatewayOptions{})
	if _, err := g.connectUpstream(t, g.clientTLS(g.frontendCA.issue(t, "agent-m")), "agentID", "a"); err == nil {
		t.Error("a frontend's certificate was accepted from an agent")
	}
	if _, err := g.connectUpstream(t, g.clientTLS(), "agentID", "a", "authorization", "Bearer frontends:agent-m"); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a frontend's token from an agent: %v", err)
	}
	if _, err := connectTo(t.Context(), g.frontendPort, g.clientTLS(g.agentCA.issue(t, "root")), "m:443", ""); err == nil {
		t.Error("an agent's certificate was accepted from a frontend")
	}
	if _, err := connectTo(t.Context(), g.frontendPort, g.clientTLS(), "m:443", "agents:root"); err == nil || !strings.Contains(err.Error(), "407") {
		t.Errorf("an agent's token from a frontend: %v", err)
	}
	// The same name on both sides gives an agent no permission to dial.
	if _, err := connectTo(t.Context(), g.frontendPort, g.clientTLS(), "m:443", "frontends:agent-m"); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("an agent's user as a frontend: %v", err)
	}
}

func TestCredentials_ClientCAsAreReadForEachConnection(t *testing.T) {
	var mu sync.Mutex
	var current *authority
	g := startGateway(t, gatewayOptions{agents: func(o *AgentServerOptions) {
		o.Credentials.Token = nil
		o.Credentials.ClientCAs = func() (*x509.CertPool, error) {
			mu.Lock()
			defer mu.Unlock()
			return current.pool(), nil
		}
	}})
	old, next := newAuthority(t, "old"), newAuthority(t, "new")
	for _, ca := range []*authority{old, next} {
		mu.Lock()
		current = ca
		mu.Unlock()
		if _, err := g.connectUpstream(t, g.clientTLS(ca.issue(t, "agent-m")), "agentID", "a"); err != nil {
			t.Errorf("connecting: %v", err)
		}
	}
	if _, err := g.connectUpstream(t, g.clientTLS(old.issue(t, "agent-m")), "agentID", "a"); err == nil {
		t.Error("a certificate of the old CA was accepted")
	}
}

func TestAgentServer_IgnoresPacketsOutOfOrder(t *testing.T) {
	g := startGateway(t, gatewayOptions{})
	agent := g.upstream(t, "m")
	for _, p := range []*client.Packet{
		{}, {Type: 42}, closeRsp(0), closeRsp(9), dataPacket(0, []byte("x")), dataPacket(9, []byte("x")), dialRsp(0, 1, ""), dialRsp(5, 0, "late"),
		closeReq(1), dataPacket(1, nil),
	} {
		agent.send(p)
	}
	if got := agent.receiveType(client.PacketType_CLOSE_REQ).GetCloseRequest().ConnectID; got != 1 {
		t.Errorf("connection %d was closed, want that of the answer that nobody waits for", got)
	}
	dialed := g.dialing(t.Context(), "m")
	dial := agent.receiveType(client.PacketType_DIAL_REQ).GetDialRequest()
	// Data and a close of the connection before it exists.
	agent.send(dataPacket(3, []byte("too early")))
	agent.send(dialRsp(dial.Random, 3, ""))
	conn := (<-dialed).must(t)
	agent.send(dialRsp(dial.Random, 3, "")) // twice
	agent.send(dataPacket(3, nil))          // nothing, and no end
	agent.send(dataPacket(3, []byte("data")))
	expectBytes(t, conn, "data")
}

func TestAgentServer_RefusesConnectionIDInUse(t *testing.T) {
	g := startGateway(t, gatewayOptions{})
	agent := g.upstream(t, "m")
	one := g.dialing(t.Context(), "m")
	agent.establish(1)
	first := (<-one).must(t)
	two := g.dialing(t.Context(), "m")
	agent.establish(1)
	if r := <-two; r.err == nil {
		t.Error("two dials got one connection")
	}
	agent.send(dataPacket(1, []byte("first")))
	expectBytes(t, first, "first")
}

func TestAgentServer_OversizedPacketEndsOnlyItsStream(t *testing.T) {
	g := startGateway(t, gatewayOptions{})
	first, second := g.upstream(t, "m"), g.upstream(t, "n")
	g.awaitSessions(t, "m", 1)
	g.awaitSessions(t, "n", 1)
	_ = first.stream.SendMsg(dataPacket(1, make([]byte, maxPacket+1)))
	g.awaitSessions(t, "m", 0)
	dialed := g.dialing(t.Context(), "n")
	second.establish(1)
	(<-dialed).must(t)
}

func TestAgentServer_LostStreamFailsDialsAtOnce(t *testing.T) {
	g := startGateway(t, gatewayOptions{})
	agent := g.upstream(t, "m")
	dialed := g.dialing(t.Context(), "m")
	agent.receiveType(client.PacketType_DIAL_REQ)
	agent.cancel()
	if r := <-dialed; !tunnel.IsNotConnected(r.err) {
		t.Errorf("the dial ended with %v", r.err)
	}
}

func TestAgentServer_UsesDrainingAgentLast(t *testing.T) {
	g := startGateway(t, gatewayOptions{})
	stays := g.upstream(t, "m")
	g.awaitSessions(t, "m", 1)
	drains := g.upstream(t, "m")
	g.awaitSessions(t, "m", 2)
	drains.send(&client.Packet{Type: client.PacketType_DRAIN, Payload: &client.Packet_Drain{Drain: &client.Drain{}}})
	newest := g.agents.sessionsOf("m")[0]
	eventually(t, "the drain has arrived", newest.retired.Load)
	dialed := g.dialing(t.Context(), "m")
	stays.establish(1)
	(<-dialed).must(t)
	stays.cancel()
	g.awaitSessions(t, "m", 1)
	dialed = g.dialing(t.Context(), "m")
	drains.establish(1)
	(<-dialed).must(t)
}

func TestAgentServer_StreamsLookLikeServers(t *testing.T) {
	g := startGateway(t, gatewayOptions{agents: func(o *AgentServerOptions) { o.StreamsPerAgent, o.Replicas = 3, func() int { return 1 } }})
	g.join(t, "m", func(c *Connector) { toAPIServer(startTCP(t, "tcp", "127.0.0.1:0", echo))(c) })
	g.awaitSessions(t, "m", 3)
	streams := map[int]bool{}
	for _, s := range g.agents.sessionsOf("m") {
		streams[s.streamIndex] = true
	}
	if diff := cmp.Diff(map[int]bool{0: true, 1: true, 2: true}, streams); diff != "" {
		t.Errorf("streams (-want +got):\n%s", diff)
	}
	// Connections spread over them.
	for range 3 {
		g.mustDial(t, "m")
	}
	for _, s := range g.agents.sessionsOf("m") {
		if s.open.Load() != 1 {
			t.Errorf("stream %d has %d connections", s.streamIndex, s.open.Load())
		}
	}
}

// frontendStream opens ProxyService.Proxy as upstream's generated code does.
func (g *gateway) frontendStream(t *testing.T, user string) *upstreamAgent {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+g.frontendPort, g.grpcOptions(t, user)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	stream, err := client.NewProxyServiceClient(conn).Proxy(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return &upstreamAgent{t: t, stream: stream, cancel: cancel}
}

func dialReq(protocol, address string, random int64) *client.Packet {
	return &client.Packet{Type: client.PacketType_DIAL_REQ, Payload: &client.Packet_DialRequest{
		DialRequest: &client.DialRequest{Protocol: protocol, Address: address, Random: random},
	}}
}

// Each of these packets is answered. Answers that an agent does not read must not accumulate in the
// gateway's memory.
func TestAgentServer_EndsStreamThatReadsNoAnswers(t *testing.T) {
	g := startGateway(t, gatewayOptions{})
	agent := g.upstream(t, "m")
	s := g.agents.sessionsOf("m")[0]
	stranger := dialRsp(1, 0, "")
	for id := int64(1); !isClosed(s.done); id++ {
		stranger.GetDialResponse().ConnectID = id
		if err := agent.stream.SendMsg(stranger); err != nil {
			break // the gateway has ended the stream
		}
	}
	<-s.done
	if !errors.Is(s.err, errTakesNothing) {
		t.Errorf("the stream ended with %v", s.err)
	}
	if s.out.controlSize > controlLimit+packetCost {
		t.Errorf("%d bytes were queued for it", s.out.controlSize)
	}
	g.awaitSessions(t, "m", 0)
}
