// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"

	"fleetgate.io/fleetgate/pkg/tunnel"
)

func TestConnector_UpstreamServerReachesOnlyAllowedTargets(t *testing.T) {
	upstream, address, ca := startServer(t, oneServer)
	apiServer, service := startTCP(t, "tcp", "127.0.0.1:0", echo), startTCP(t, "tcp", "127.0.0.1:0", echo)
	joinServer(t, address, ca, func(c *Connector) {
		toAPIServer(apiServer)(c)
		c.APIServer = []string{"kubernetes.default.svc:443", apiServer}
		c.Allow = mustAllow(t, service)
	})
	s := <-upstream.streams
	for _, test := range []struct {
		protocol, address string
		says              string
	}{
		{"tcp", "kubernetes.default.svc:443", ""},
		{"tcp", apiServer, ""},
		{"tcp", service, ""},
		{"tcp", "127.0.0.1:1", "not among those"},
		{"tcp", "169.254.169.254:80", "not among those"},
		{"tcp", "metadata.google.internal:80", "not among those"},
		{"tcp", "kubernetes.default.svc:10250", "not among those"},
		{"tcp", "nowhere", "host:port"},
		{"unix", "/var/run/docker.sock", "by tcp"},
		{"udp", service, "by tcp"},
		{protocolTarget, tunnel.APIServer, "by tcp"},
	} {
		s.send(packet{kind: dialRequest, protocol: test.protocol, address: test.address, random: 77})
		response := s.receiveType(dialResponse)
		if response.random != 77 || (response.reason == "") != (test.says == "") || !strings.Contains(response.reason, test.says) {
			t.Errorf("%s %s was answered with %d, %q", test.protocol, test.address, response.connID, response.reason)
		}
		if response.connID == 0 {
			continue
		}
		s.send(packet{kind: data, connID: response.connID, payload: payloadOf([]byte("hello"))})
		if got := s.receiveType(data); got.connID != response.connID || string(got.payload.Materialize()) != "hello" {
			t.Errorf("connection %d sent %q", got.connID, got.payload.Materialize())
		}
		s.send(packet{kind: closeRequest, connID: response.connID})
		s.receiveType(closeResponse)
	}
}

func TestConnector_DataBeforeCloseReachesUpstreamServer(t *testing.T) {
	upstream, address, ca := startServer(t, oneServer)
	// More than the server's window accepts while it does not read. Some data still waits in the
	// agent when the target has closed, as servers of HTTP/1.0 do.
	const bytes = agentWindow + outLimit/2
	target := startTCP(t, "tcp", "127.0.0.1:0", func(c *net.TCPConn) {
		request := make([]byte, len("GET / HTTP/1.0\r\n\r\n"))
		if _, err := io.ReadFull(c, request); err != nil {
			t.Error(err)
		}
		if _, err := io.Copy(c, &pattern{n: bytes}); err != nil {
			t.Error(err)
		}
	})
	metrics, err := NewAgentMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	joinServer(t, address, ca, func(c *Connector) { c.Allow, c.Metrics = mustAllow(t, target), metrics })
	s := <-upstream.streams
	s.send(packet{kind: dialRequest, protocol: "tcp", address: target, random: 1})
	id := s.receiveType(dialResponse).connID
	eventually(t, "the connection is served", func() bool { return testutil.ToFloat64(metrics.endpoints) == 1 })
	s.send(packet{kind: data, connID: id, payload: payloadOf([]byte("GET / HTTP/1.0\r\n\r\n"))})
	eventually(t, "the agent has seen the end", func() bool { return testutil.ToFloat64(metrics.endpoints) == 0 })
	got := &pattern{}
	for got.at < bytes {
		if _, err := got.Write(s.receiveType(data).payload.Materialize()); err != nil {
			t.Fatal(err)
		}
	}
	if p := s.receiveType(closeResponse); p.connID != id || p.reason != "" {
		t.Errorf("connection %d was closed, %q", p.connID, p.reason)
	}
}

func TestConnector_ConnectsToAllServers(t *testing.T) {
	var next atomic.Int64
	// A load balancer that chooses the same server twice before the next.
	upstream, address, ca := startServer(t, func() serverInfo {
		return serverInfo{id: string(rune('a' + (next.Add(1)-1)/2)), count: 3}
	})
	registry := prometheus.NewRegistry()
	metrics, err := NewAgentMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	joinServer(t, address, ca, func(c *Connector) {
		c.Metrics = metrics
		c.Random = func() float64 { return 0 }
	})
	eventually(t, "three servers are connected", func() bool { return testutil.ToFloat64(metrics.servers) == 3 })
	if known := testutil.ToFloat64(metrics.knownServers); known != 3 {
		t.Errorf("%v servers are known", known)
	}
	if n := len(upstream.streams); n != 5 {
		t.Errorf("%d streams were opened, want 3 and 2 duplicates", n)
	}
}

// The agent detects this when it connects: it replaces the first connection before it is used.
func TestConnector_PingsUpstreamServersRarely(t *testing.T) {
	upstream, address, ca := startServer(t, oneServer)
	joinServer(t, address, ca, func(c *Connector) { c.PingAfter = 0 })
	first, second := <-upstream.streams, <-upstream.streams
	<-first.Context().Done()
	second.send(packet{kind: dialRequest, protocol: "udp", address: "10.0.0.1:53", random: 1})
	second.receiveType(dialResponse)
	if n := len(upstream.streams); n != 0 {
		t.Errorf("%d more streams were opened", n)
	}
}

func TestConnector_DrainsWhenItStops(t *testing.T) {
	upstream, address, ca := startServer(t, oneServer)
	target := startTCP(t, "tcp", "127.0.0.1:0", echo)
	leave := joinServer(t, address, ca, func(c *Connector) {
		c.Allow = mustAllow(t, target)
		c.DrainTime = time.Minute
	})
	s := <-upstream.streams
	s.send(packet{kind: dialRequest, protocol: "tcp", address: target, random: 1})
	id := s.receiveType(dialResponse).connID
	var leaving sync.WaitGroup
	leaving.Go(leave)
	s.receiveType(drain)
	// Open connections continue.
	s.send(packet{kind: data, connID: id, payload: payloadOf([]byte("still"))})
	s.receiveType(data)
	s.send(packet{kind: closeRequest, connID: id})
	s.receiveType(closeResponse)
	leaving.Wait()
}

func TestConnector_ReportsReasonOfRefusal(t *testing.T) {
	g := startGateway(t, gatewayOptions{})
	reasons := make(chan error, 16)
	c := &Connector{
		Member: "n", Address: g.agentPort, ID: "a", TLS: g.clientTLS(g.agentCA.issue(t, "agent-m")),
		OnStateChange: func(s tunnel.State) { reasons <- s.Reason },
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	if err := <-reasons; err == nil || !strings.Contains(err.Error(), `is not the agent of "n"`) {
		t.Errorf("the reason was %v", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestReview_EndsSessionOfRevokedIdentity(t *testing.T) {
	for _, test := range []struct {
		name   string
		revoke func(token, member *atomic.Bool)
	}{
		{"the token", func(token, _ *atomic.Bool) { token.Store(true) }},
		{"the identity's member", func(_, member *atomic.Bool) { member.Store(true) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			var token, member atomic.Bool
			g := startGateway(t, gatewayOptions{agents: func(o *AgentServerOptions) {
				o.ReviewPeriod = time.Millisecond
				of := o.Credentials.Token
				o.Credentials.Token = func(ctx context.Context, t string) (Identity, bool, error) {
					id, ok, err := of(ctx, t)
					return id, ok && !token.Load(), err
				}
				o.IsAgentOf = func(ctx context.Context, user, of string) (bool, error) {
					if member.Load() {
						return false, nil
					}
					return isAgentOf(ctx, user, of)
				}
			}})
			agent, err := g.connectUpstream(t, g.clientTLS(), "agentID", "a", "authorization", "Bearer agents:agent-m")
			if err != nil {
				t.Fatal(err)
			}
			test.revoke(&token, &member)
			if err := agent.stream.RecvMsg(new(client.Packet)); status.Code(err) != codes.Unavailable {
				t.Errorf("the stream ended with %v", err)
			}
			g.awaitSessions(t, "m", 0)
		})
	}
}

// A failed review is no reason to cut connections.
func TestReview_FailedReviewEndsNothing(t *testing.T) {
	var broken atomic.Bool
	var asked atomic.Int64
	g := startGateway(t, gatewayOptions{agents: func(o *AgentServerOptions) {
		o.ReviewPeriod = time.Millisecond
		o.IsAgentOf = func(ctx context.Context, user, member string) (bool, error) {
			if broken.Load() {
				asked.Add(1)
				return false, errors.New("the hub is unreachable")
			}
			return isAgentOf(ctx, user, member)
		}
	}})
	agent := g.upstream(t, "m")
	broken.Store(true)
	eventually(t, "some reviews have failed", func() bool { return asked.Load() > 3 })
	dialed := g.dialing(t.Context(), "m")
	agent.establish(1)
	(<-dialed).must(t)
}

// Before its credential expires, our agent has another session.
func TestReview_ExpiringSessionIsReplacedBeforeItEnds(t *testing.T) {
	var issued atomic.Int64
	g := startGateway(t, gatewayOptions{agents: func(o *AgentServerOptions) {
		o.Credentials.Token = func(_ context.Context, token string) (Identity, bool, error) {
			id := Identity{Name: "agent-m", Expires: time.Now().Add(time.Hour)}
			if token == "1" {
				id.Expires = time.Now().Add(tunnel.RenewBefore / 2)
			}
			return id, true, nil
		}
	}})
	g.join(t, "m", func(c *Connector) {
		toAPIServer(startTCP(t, "tcp", "127.0.0.1:0", echo))(c)
		c.TLS = g.clientTLS()
		c.Random = func() float64 { return 0 }
		c.Token = func(context.Context) (string, error) {
			return string(rune('0' + issued.Add(1))), nil
		}
	})
	g.awaitSessions(t, "m", 2)
	sessions := g.agents.sessionsOf("m")
	if sessions[0].retired.Load() || !sessions[1].retired.Load() {
		t.Error("not the older session is retired")
	}
	conn := g.mustDial(t, "m")
	if _, err := conn.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if sessions[0].open.Load() != 1 {
		t.Error("the dial did not go to the new session")
	}
}

func TestAgentServer_LimitsSessionsAndConnections(t *testing.T) {
	g := startGateway(t, gatewayOptions{agents: func(o *AgentServerOptions) { o.MaxSessions, o.MaxConnections = 2, 2 }})
	agents := []*upstreamAgent{g.upstream(t, "m"), g.upstream(t, "m")}
	if _, err := g.connectUpstream(t, g.clientTLS(g.agentCA.issue(t, "agent-m")), "agentID", "x"); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a third session: %v", err)
	}
	for _, agent := range agents {
		go agent.answerAll()
	}
	for range 4 {
		g.mustDial(t, "m")
	}
	_, err := g.registry.DialMember(t.Context(), "m", tunnel.APIServer)
	var refused *tunnel.RefusedError
	if !errors.As(err, &refused) || refused.Code != tunnel.Busy {
		t.Errorf("a fifth connection: %v", err)
	}
}

// answerAll establishes every dial.
func (a *upstreamAgent) answerAll() {
	for id := int64(1); ; id++ {
		p := new(client.Packet)
		if err := a.stream.RecvMsg(p); err != nil {
			return
		}
		if p.Type == client.PacketType_DIAL_REQ {
			_ = a.stream.SendMsg(dialRsp(p.GetDialRequest().Random, id, ""))
		}
	}
}

func TestConnector_LimitsConnections(t *testing.T) {
	upstream, address, ca := startServer(t, oneServer)
	target := startTCP(t, "tcp", "127.0.0.1:0", echo)
	joinServer(t, address, ca, func(c *Connector) {
		c.Allow = mustAllow(t, target)
		c.MaxConnections = 1
	})
	s := <-upstream.streams
	s.send(packet{kind: dialRequest, protocol: "tcp", address: target, random: 1})
	s.receiveType(dialResponse)
	s.send(packet{kind: dialRequest, protocol: "tcp", address: target, random: 2})
	if response := s.receiveType(dialResponse); response.random != 2 || !strings.Contains(response.reason, "in use") {
		t.Errorf("the second dial was answered with %q", response.reason)
	}
}

func TestAgentServer_AsksUpstreamAgentOnlyForAllowedAddresses(t *testing.T) {
	g := startGateway(t, gatewayOptions{agents: func(o *AgentServerOptions) { o.Allow = mustAllow(t, "10.0.0.0/8:10250") }})
	agent := g.upstream(t, "m")
	for _, target := range []string{"10.0.0.1:22", "127.0.0.1:10250", tunnel.Agent, "/run/x.sock", "kubernetes.default.svc:443"} {
		if _, err := g.registry.DialMember(t.Context(), "m", target); !tunnel.IsRefused(err) {
			t.Errorf("dialing %s: %v", target, err)
		}
	}
	go func() { _, _ = g.registry.DialMember(t.Context(), "m", "10.0.0.1:10250") }()
	if dial := agent.receiveType(client.PacketType_DIAL_REQ).GetDialRequest(); dial.Address != "10.0.0.1:10250" || dial.Protocol != "tcp" {
		t.Errorf("the agent was asked for %s", dial)
	}
	go func() { _, _ = g.registry.DialMember(t.Context(), "m", tunnel.APIServer) }()
	if dial := agent.receiveType(client.PacketType_DIAL_REQ).GetDialRequest(); dial.Address != "kubernetes.default.svc:443" {
		t.Errorf("the agent was asked for %s", dial)
	}
}

func TestConnector_ServesItsTargets(t *testing.T) {
	g := startGateway(t, gatewayOptions{})
	g.join(t, "m", func(c *Connector) {
		c.Targets = map[string]tunnel.Target{tunnel.Agent: tunnel.TCP(startTCP(t, "tcp", "127.0.0.1:0", echo))}
	})
	conn, err := g.registry.DialMember(t.Context(), "m", tunnel.Agent)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = g.registry.DialMember(t.Context(), "m", "nothing")
	var refused *tunnel.RefusedError
	if !errors.As(err, &refused) || refused.Code != tunnel.UnknownTarget {
		t.Errorf("a target that is not there: %v", err)
	}
}

// The names are upstream's, for existing dashboards.
func TestMetrics_HaveUpstreamNames(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	g := startGateway(t, gatewayOptions{
		agents:    func(o *AgentServerOptions) { o.Metrics = metrics },
		frontends: func(o *FrontendServerOptions) { o.Metrics = metrics },
	})
	g.join(t, "m", toAPIServer(startTCP(t, "tcp", "127.0.0.1:0", echo)))
	conn, err := g.connectDialer(t, "root", "m:443")(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const want = `
# HELP konnectivity_network_proxy_server_established_connections Number of connections that agents have established.
# TYPE konnectivity_network_proxy_server_established_connections gauge
konnectivity_network_proxy_server_established_connections 1
# HELP konnectivity_network_proxy_server_http_connections Number of open HTTP CONNECT connections.
# TYPE konnectivity_network_proxy_server_http_connections gauge
konnectivity_network_proxy_server_http_connections 1
# HELP konnectivity_network_proxy_server_ready_backend_connections Number of streams of agents.
# TYPE konnectivity_network_proxy_server_ready_backend_connections gauge
konnectivity_network_proxy_server_ready_backend_connections 1
# HELP konnectivity_network_proxy_server_pending_backend_dials Number of dials without a response from the agent yet.
# TYPE konnectivity_network_proxy_server_pending_backend_dials gauge
konnectivity_network_proxy_server_pending_backend_dials 0
# HELP fleetgate_konnectivity_connections Number of open connections to a member.
# TYPE fleetgate_konnectivity_connections gauge
fleetgate_konnectivity_connections{member="m"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want),
		"konnectivity_network_proxy_server_established_connections", "konnectivity_network_proxy_server_http_connections",
		"konnectivity_network_proxy_server_ready_backend_connections", "konnectivity_network_proxy_server_pending_backend_dials",
		"fleetgate_konnectivity_connections"); err != nil {
		t.Error(err)
	}
	g.agents.Disconnect("m")
	g.awaitSessions(t, "m", 0)
}

func TestDisconnect_EndsOnlySessionsOfTheMember(t *testing.T) {
	g := startGateway(t, gatewayOptions{})
	gone, stays := g.upstream(t, "m"), g.upstream(t, "n")
	g.agents.Disconnect("m")
	if err := gone.stream.RecvMsg(new(client.Packet)); status.Code(err) != codes.Unavailable {
		t.Errorf("the stream ended with %v", err)
	}
	dialed := g.dialing(t.Context(), "n")
	stays.establish(1)
	(<-dialed).must(t)
}

func TestAgentServer_PendingHandshakeDoesNotBlockOthers(t *testing.T) {
	g := startGateway(t, gatewayOptions{})
	silent, err := net.Dial("tcp", g.agentPort)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if _, err := tls.Dial("tcp", g.agentPort, &tls.Config{MaxVersion: tls.VersionTLS12, RootCAs: g.serverCA.pool(), ServerName: "localhost"}); err == nil {
		t.Error("TLS 1.2 was accepted")
	}
	g.upstream(t, "m")
}

func TestParseServerInfo_ReadsMetadata(t *testing.T) {
	want := serverInfo{id: "s", count: 3, extended: true}
	got, err := parseServerInfo(want.metadata())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(serverInfo{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, count := range map[string]int{"none": 0, "negative": -1, "more than one believes": maxServers + 1} {
		if _, err := parseServerInfo(serverInfo{id: "s", count: count}.metadata()); err == nil {
			t.Errorf("a count that is %s was believed", name)
		}
	}
}

func TestAgentServer_NewStreamGetsNewRequests(t *testing.T) {
	g := startGateway(t, gatewayOptions{})
	g.upstream(t, "m")
	g.awaitMember(t, "m")
	joined := g.registry.LastSessionChange("m")
	g.upstream(t, "m")
	eventually(t, "older connections take no more requests", func() bool { return g.registry.LastSessionChange("m").After(joined) })
}

// Reviews of all agents would ask the hub about each token and list all members every ten seconds.
func TestReview_OfWatchedAgentLooksAtItsMemberOnly(t *testing.T) {
	var reviews, tokens atomic.Int64
	g := startGateway(t, gatewayOptions{agents: func(o *AgentServerOptions) {
		o.ReviewPeriod = time.Millisecond
		o.Watched = func(user, member string) bool { return user == agentOf(member) }
		token := o.Credentials.Token
		o.Credentials.Token = func(ctx context.Context, t string) (Identity, bool, error) {
			tokens.Add(1)
			return token(ctx, t)
		}
		o.IsAgentOf = func(ctx context.Context, user, member string) (bool, error) {
			reviews.Add(1)
			return isAgentOf(ctx, user, member)
		}
		o.MembersOf = func(context.Context, string) ([]string, error) {
			t.Error("all members were listed")
			return nil, nil
		}
	}})
	if _, err := g.connectUpstream(t, g.clientTLS(), "agentID", "a", "agentIdentifiers", "host=m", "authorization", "Bearer agents:agent-m"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "there were some reviews", func() bool { return reviews.Load() > 5 })
	if got := tokens.Load(); got != 1 {
		t.Errorf("the token was reviewed %d times, want once", got)
	}
}

// The identity is revoked after the agent was admitted, and before Disconnect finds its session.
func TestReview_RevocationDuringAdmissionEndsSession(t *testing.T) {
	var asked atomic.Int64
	g := startGateway(t, gatewayOptions{agents: func(o *AgentServerOptions) {
		o.ReviewPeriod = time.Hour
		o.IsAgentOf = func(context.Context, string, string) (bool, error) { return asked.Add(1) == 1, nil }
	}})
	agent, err := g.connectUpstream(t, g.clientTLS(), "agentID", "a", "agentIdentifiers", "host=m", "authorization", "Bearer agents:agent-m")
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.stream.RecvMsg(new(client.Packet)); status.Code(err) != codes.Unavailable {
		t.Errorf("the stream ended with %v", err)
	}
}
