// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/tunneltest"
)

// authority is a CA of a test.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t testing.TB, name string) *authority {
	t.Helper()
	a := &authority{key: newKey(t)}
	a.certificate = sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, &a.key.PublicKey, nil, a.key)
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t testing.TB, template *x509.Certificate, public any, parent *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Hour)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// issue creates a certificate for a user, also valid for servers on loopback.
func (a *authority) issue(t testing.TB, user string) tls.Certificate {
	t.Helper()
	key := newKey(t)
	leaf := sign(t, &x509.Certificate{
		Subject:     pkix.Name{CommonName: user},
		DNSNames:    []string{"localhost", "*.fleet.example"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, &key.PublicKey, a.certificate, a.key)
	return tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
}

// gateway is both listeners of one, on loopback.
type gateway struct {
	registry                *tunnel.Registry
	agents                  *AgentServer
	frontends               *FrontendServer
	serverCA                *authority
	agentCA, frontendCA     *authority
	agentPort, frontendPort string
}

// The identity of the agent of member m is agent-m. Tokens are "<audience>:<user>".
const (
	agentAudience    = "agents"
	frontendAudience = "frontends"
)

func agentOf(member string) string { return "agent-" + member }

func tokensFor(audience string) func(context.Context, string) (Identity, bool, error) {
	return func(_ context.Context, token string) (Identity, bool, error) {
		user, ok := strings.CutPrefix(token, audience+":")
		return Identity{Name: user}, ok, nil
	}
}

func membersOf(_ context.Context, user string) ([]string, error) {
	if member, ok := strings.CutPrefix(user, "agent-"); ok {
		return strings.Split(member, "+"), nil
	}
	return nil, nil
}

func isAgentOf(ctx context.Context, user, member string) (bool, error) {
	members, err := membersOf(ctx, user)
	return slices.Contains(members, member), err
}

// mayDial lets dialer-m dial into member m, and root into all.
func mayDial(_ context.Context, id Identity, member string) (bool, error) {
	return id.Name == "root" || id.Name == "dialer-"+member, nil
}

type gatewayOptions struct {
	agents    func(*AgentServerOptions)
	frontends func(*FrontendServerOptions)
	// listen is the address of both; empty is any port of 127.0.0.1.
	listen string
}

func startGateway(t testing.TB, o gatewayOptions) *gateway {
	t.Helper()
	g := &gateway{registry: tunneltest.NewRegistry(t, tunnel.Options{}), serverCA: newAuthority(t, "server"), agentCA: newAuthority(t, "agents"), frontendCA: newAuthority(t, "frontends")}
	serving := g.serverCA.issue(t, "gateway")
	certificate := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &serving, nil }
	credentialsOf := func(ca *authority, audience string) Credentials {
		return Credentials{ClientCAs: func() (*x509.CertPool, error) { return ca.pool(), nil }, Token: tokensFor(audience)}
	}
	agents := AgentServerOptions{Credentials: credentialsOf(g.agentCA, agentAudience), IsAgentOf: isAgentOf, MembersOf: membersOf, Join: g.registry.ServeSession, Changed: g.registry.SessionsChanged, Certificate: certificate, ID: "gateway-1"}
	if o.agents != nil {
		o.agents(&agents)
	}
	var err error
	if g.agents, err = NewAgentServer(agents); err != nil {
		t.Fatal(err)
	}
	frontends := FrontendServerOptions{Credentials: credentialsOf(g.frontendCA, frontendAudience), Authorize: mayDial, Dialer: g.registry, Certificate: certificate}
	if o.frontends != nil {
		o.frontends(&frontends)
	}
	if g.frontends, err = NewFrontendServer(frontends); err != nil {
		t.Fatal(err)
	}
	g.agentPort = serve(t, o.listen, g.agents.Serve)
	g.frontendPort = serve(t, o.listen, g.frontends.Serve)
	return g
}

// serve runs a server until the end of the test and returns its address.
func serve(t testing.TB, address string, run func(context.Context, net.Listener, time.Duration) error) string {
	t.Helper()
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, listener, time.Millisecond) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	return listener.Addr().String()
}

func (g *gateway) clientTLS(certificates ...tls.Certificate) *tls.Config {
	return &tls.Config{RootCAs: g.serverCA.pool(), Certificates: certificates, ServerName: "localhost"}
}

// join connects our own agent and waits until the gateway has all its streams.
func (g *gateway) join(t testing.TB, member string, change func(*Connector)) (leave func()) {
	t.Helper()
	up := make(chan struct{})
	var once sync.Once
	c := &Connector{
		Member: member, Address: g.agentPort, ID: member + "-agent", TLS: g.clientTLS(g.agentCA.issue(t, agentOf(member))),
		OnStateChange: func(s tunnel.State) {
			if s.Connected {
				once.Do(func() { close(up) })
			}
		},
	}
	if change != nil {
		change(c)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	leave = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("running the agent: %v", err)
		}
	})
	t.Cleanup(leave)
	select {
	case <-up:
	case err := <-ended:
		t.Fatalf("running the agent: %v", err)
	}
	if g.registry != nil { // a server of upstream's has none
		g.awaitMember(t, member)
	}
	return leave
}

// awaitMember waits until the registry knows that the member has an agent.
func (g *gateway) awaitMember(t testing.TB, member string) {
	t.Helper()
	eventually(t, "the member is connected", func() bool { return g.registry.Connected(member) })
}

// sessionsOf are the streams of a member's agents, the newest first.
func (a *AgentServer) sessionsOf(member string) []*session {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if agents := a.members[member]; agents != nil {
		return agents.sessions
	}
	return nil
}

// toAPIServer makes our agent pipe to a server as the member's API server.
func toAPIServer(address string) func(*Connector) {
	return func(c *Connector) {
		c.Targets = map[string]tunnel.Target{tunnel.APIServer: tunnel.TCP(address)}
	}
}

// startTCP runs a server until the end of the test and returns its address.
func startTCP(t testing.TB, network, address string, handle func(*net.TCPConn)) string {
	t.Helper()
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[conn] = true
			mu.Unlock()
			serving.Go(func() {
				handle(conn.(*net.TCPConn))
				_ = conn.Close()
				mu.Lock()
				delete(open, conn)
				mu.Unlock()
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		for conn := range open {
			_ = conn.Close()
		}
		mu.Unlock()
		serving.Wait()
	})
	return listener.Addr().String()
}

func echo(c *net.TCPConn) {
	_, _ = io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c})
	_ = c.CloseWrite()
}

// upstreamAgent is an agent's stream with upstream's generated code. Its packets use protobuf, and
// it knows none of ours.
type upstreamAgent struct {
	t      testing.TB
	stream grpc.ClientStream
	cancel context.CancelFunc
}

// connectUpstream opens AgentService.Connect with the given metadata.
func (g *gateway) connectUpstream(t testing.TB, config *tls.Config, md ...string) (*upstreamAgent, error) {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+g.agentPort, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(context.Background(), metadata.Pairs(md...)))
	t.Cleanup(cancel)
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{StreamName: "Connect", ServerStreams: true, ClientStreams: true}, "/AgentService/Connect")
	if err != nil {
		return nil, err
	}
	header, err := stream.Header()
	if err != nil {
		return nil, err
	}
	if len(header.Get("serverid")) == 0 {
		return nil, stream.RecvMsg(new(client.Packet))
	}
	return &upstreamAgent{t: t, stream: stream, cancel: cancel}, nil
}

// upstream is connectUpstream of an accepted agent.
func (g *gateway) upstream(t testing.TB, member string) *upstreamAgent {
	t.Helper()
	a, err := g.connectUpstream(t, g.clientTLS(g.agentCA.issue(t, agentOf(member))), "agentID", member+"-agent")
	if err != nil {
		t.Fatalf("connecting an agent of upstream's: %v", err)
	}
	g.awaitMember(t, member)
	return a
}

func (a *upstreamAgent) send(p *client.Packet) {
	a.t.Helper()
	if err := a.stream.SendMsg(p); err != nil {
		a.t.Errorf("sending %s: %v", p.Type, err)
	}
}

func (a *upstreamAgent) receive() *client.Packet {
	a.t.Helper()
	p := new(client.Packet)
	if err := a.stream.RecvMsg(p); err != nil {
		a.t.Fatalf("receiving: %v", err)
	}
	return p
}

// receiveType fails the test if another packet comes.
func (a *upstreamAgent) receiveType(want client.PacketType) *client.Packet {
	a.t.Helper()
	p := a.receive()
	if p.Type != want {
		a.t.Fatalf("received %s, want %s", p, want)
	}
	return p
}

// establish answers the dial that has to come next.
func (a *upstreamAgent) establish(connID int64) {
	a.t.Helper()
	dial := a.receiveType(client.PacketType_DIAL_REQ)
	a.send(dialRsp(dial.GetDialRequest().Random, connID, ""))
}

func dialRsp(random, connID int64, reason string) *client.Packet {
	return &client.Packet{Type: client.PacketType_DIAL_RSP, Payload: &client.Packet_DialResponse{
		DialResponse: &client.DialResponse{Random: random, ConnectID: connID, Error: reason},
	}}
}

func dataPacket(connID int64, b []byte) *client.Packet {
	return &client.Packet{Type: client.PacketType_DATA, Payload: &client.Packet_Data{Data: &client.Data{ConnectID: connID, Data: b}}}
}

func closeRsp(connID int64) *client.Packet {
	return &client.Packet{Type: client.PacketType_CLOSE_RSP, Payload: &client.Packet_CloseResponse{CloseResponse: &client.CloseResponse{ConnectID: connID}}}
}

func closeReq(connID int64) *client.Packet {
	return &client.Packet{Type: client.PacketType_CLOSE_REQ, Payload: &client.Packet_CloseRequest{CloseRequest: &client.CloseRequest{ConnectID: connID}}}
}

// serveLikeUpstream serves packets as upstream's agent does, in its simplest form: small reads, an
// immediate close, no flow control.
func (a *upstreamAgent) serveLikeUpstream() {
	var mu sync.Mutex
	send := func(p *client.Packet) {
		mu.Lock()
		defer mu.Unlock()
		_ = a.stream.SendMsg(p)
	}
	conns := map[int64]net.Conn{}
	next := int64(0)
	for {
		p := new(client.Packet)
		if err := a.stream.RecvMsg(p); err != nil {
			for _, c := range conns {
				_ = c.Close()
			}
			return
		}
		switch p.Type {
		case client.PacketType_DIAL_REQ:
			dial := p.GetDialRequest()
			conn, err := net.Dial(dial.Protocol, dial.Address)
			if err != nil {
				send(dialRsp(dial.Random, 0, err.Error()))
				continue
			}
			next++
			id := next
			conns[id] = conn
			send(dialRsp(dial.Random, id, ""))
			go func() {
				for {
					b := make([]byte, 4<<10)
					n, err := conn.Read(b)
					if n > 0 {
						send(dataPacket(id, b[:n]))
					}
					if err != nil {
						send(closeRsp(id))
						return
					}
				}
			}()
		case client.PacketType_DATA:
			if c := conns[p.GetData().ConnectID]; c != nil {
				_, _ = c.Write(p.GetData().Data)
			}
		case client.PacketType_CLOSE_REQ:
			if c := conns[p.GetCloseRequest().ConnectID]; c != nil {
				_ = c.Close()
			}
		}
	}
}

// mustDial dials a member's API server through the gateway.
func (g *gateway) mustDial(t testing.TB, member string) net.Conn {
	t.Helper()
	conn, err := g.registry.DialMember(context.Background(), member, tunnel.APIServer)
	if err != nil {
		t.Fatalf("dialing: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// eventually waits for other goroutines.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	const patience = 20 * time.Second
	deadline := time.After(patience)
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !is() {
		select {
		case <-deadline:
			t.Fatalf("not within %s: %s", patience, what)
		case <-ticker.C:
		}
	}
}

var errPattern = errors.New("the bytes are not those that were sent")

// pattern is a reader of n bytes that the other side can verify.
type pattern struct{ at, n int64 }

func (p *pattern) Read(b []byte) (int, error) {
	if p.at == p.n {
		return 0, io.EOF
	}
	n := int(min(int64(len(b)), p.n-p.at))
	for i := range b[:n] {
		b[i] = byte((p.at + int64(i)) * 7 >> 3)
	}
	p.at += int64(n)
	return n, nil
}

// Write checks that the written data equals what a pattern reads.
func (p *pattern) Write(b []byte) (int, error) {
	for i := range b {
		if b[i] != byte((p.at+int64(i))*7>>3) {
			return i, errPattern
		}
	}
	p.at += int64(len(b))
	return len(b), nil
}
