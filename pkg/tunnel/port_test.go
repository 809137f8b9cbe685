// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/tunneltest"
)

// authority signs certificates for a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key}
}

// issue creates a certificate with a server's name or a client's common name.
func (a *authority) issue(t testing.TB, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

func (a *authority) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
}

const portName = "gateway.test"

// startPort runs the port of a registry and returns its address. The only agent is user
// "agent-of-one" of member "one". adjust may change the port first.
func startPort(t testing.TB, r *tunnel.Registry, ca *authority, adjust func(*tunnel.Port)) string {
	t.Helper()
	port := &tunnel.Port{
		Registry: r,
		TLS:      &tls.Config{Certificates: []tls.Certificate{ca.issue(t, portName)}},
		Path: func(path string) (string, bool) {
			return strings.CutPrefix(path, "/tunnels/")
		},
		Authenticate: func(_ context.Context, token string) (string, time.Time, bool, error) {
			if token == "broken" {
				return "", time.Time{}, false, errors.New("the hub is unreachable, and here is a secret")
			}
			return "agent-of-one", time.Time{}, token == "good", nil
		},
		IsAgentOf: func(_ context.Context, user, member string) (bool, error) {
			return user == "agent-of-one" && member == "one", nil
		},
	}
	adjust(port)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- port.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the port ended with %v", err)
		}
	})
	return listener.Addr().String()
}

func portDialer(address, path string, roots *x509.CertPool, token string) *tunnel.HubDialer {
	return &tunnel.HubDialer{
		URL:   "https://" + address + path,
		TLS:   &tls.Config{RootCAs: roots, ServerName: portName},
		Token: func(context.Context) (string, error) { return token, nil },
	}
}

func TestPort_AcceptsOnlyAgentOfTheMember(t *testing.T) {
	ca, clients := newAuthority(t), newAuthority(t)
	for name, c := range map[string]struct {
		path, token string
		cert        *tls.Certificate
		// want is the status of the refusal, 0 for a session.
		want int
	}{
		"with its token":                    {"/tunnels/one", "good", nil, 0},
		"with a token of somebody else":     {"/tunnels/one", "bad", nil, http.StatusUnauthorized},
		"without a token":                   {"/tunnels/one", "", nil, http.StatusUnauthorized},
		"for another member":                {"/tunnels/two", "good", nil, http.StatusForbidden},
		"at another path":                   {"/metrics", "good", nil, http.StatusNotFound},
		"at another path without a token":   {"/metrics", "", nil, http.StatusUnauthorized},
		"when tokens cannot be verified":    {"/tunnels/one", "broken", nil, http.StatusServiceUnavailable},
		"with its certificate":              {"/tunnels/one", "", new(clients.issue(t, "agent-of-one")), 0},
		"with a certificate of another one": {"/tunnels/one", "good", new(clients.issue(t, "agent-of-two")), http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			r := tunneltest.NewRegistry(t, tunnel.Options{})
			address := startPort(t, r, ca, func(p *tunnel.Port) { p.ClientCAs = func() (*x509.CertPool, error) { return clients.pool(), nil } })
			dialer := portDialer(address, c.path, ca.pool(), c.token)
			if c.cert != nil {
				dialer.TLS.Certificates = []tls.Certificate{*c.cert}
			}
			conn, err := dialer.Dial(t.Context())
			if c.want == 0 {
				if err != nil {
					t.Fatal(err)
				}
				_ = conn.Close()
				return
			}
			var refused *tunnel.HubError
			if !errors.As(err, &refused) || refused.StatusCode != c.want {
				t.Fatalf("got %v, want status %d", err, c.want)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the refusal contains a secret: %v", err)
			}
		})
	}
}

// Each tunnel kept the goroutine of the request that had opened it, with its read buffers and a
// deep stack. That was half of the memory for tunnels in a gateway of a thousand members.
func TestPort_TunnelReleasesItsRequest(t *testing.T) {
	ca, r := newAuthority(t), tunneltest.NewRegistry(t, tunnel.Options{})
	address := startPort(t, r, ca, func(*tunnel.Port) {})
	runAgent(t, portDialer(address, "/tunnels/one", ca.pool(), "good").Dial, map[string]tunnel.Target{"a": says("hello")})
	eventually(t, func() bool { return r.Connected("one") })
	eventually(t, func() bool {
		var stacks bytes.Buffer
		_ = pprof.Lookup("goroutine").WriteTo(&stacks, 2)
		return !strings.Contains(stacks.String(), "net/http.(*conn).serve(")
	})
	if got := hear(t, r, "one", "a"); got != "hello" {
		t.Errorf("heard %q after the request", got)
	}
}

func TestPort_RequiresTLS13AndIsVerified(t *testing.T) {
	ca := newAuthority(t)
	r := tunneltest.NewRegistry(t, tunnel.Options{})
	address := startPort(t, r, ca, func(*tunnel.Port) {})
	old := portDialer(address, "/tunnels/one", ca.pool(), "good")
	old.TLS.MaxVersion = tls.VersionTLS12
	if _, err := old.Dial(t.Context()); err == nil {
		t.Error("TLS 1.2 was accepted")
	}
	if _, err := portDialer(address, "/tunnels/one", newAuthority(t).pool(), "good").Dial(t.Context()); err == nil {
		t.Error("the agent trusts a port whose certificate another CA signed")
	}
}

func TestPort_HandsOverOtherProtocols(t *testing.T) {
	ca := newAuthority(t)
	r := tunneltest.NewRegistry(t, tunnel.Options{})
	address := startPort(t, r, ca, func(p *tunnel.Port) {
		p.Others = map[string]func(context.Context, *tls.Conn){"h2": func(_ context.Context, conn *tls.Conn) {
			_, _ = io.WriteString(conn, "other")
			_ = conn.Close()
		}}
	})
	conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: ca.pool(), ServerName: portName, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got, err := io.ReadAll(conn); string(got) != "other" {
		t.Errorf("read %q, %v", got, err)
	}
}

// TestConnector_MovesToPortAndFallsBackToHub follows one agent. It connects through the hub, learns the
// port and moves there without cutting a stream, and reconnects through the hub when the port is
// closed. A lost session is re-established where it was, and through the hub if that does not work.
func TestConnector_MovesToPortAndFallsBackToHub(t *testing.T) {
	ca := newAuthority(t)
	var mu sync.Mutex
	var info tunnel.Info
	r := tunneltest.NewRegistry(t, tunnel.Options{Info: func() tunnel.Info {
		mu.Lock()
		defer mu.Unlock()
		return info
	}})
	port := startPort(t, r, ca, func(*tunnel.Port) {})
	link := tunneltest.NewLink(t, port)
	hub := tunneltest.Serve(t, "127.0.0.1", func(c *net.TCPConn) { _ = r.Serve(context.Background(), "one", c) })

	states := make(chan tunnel.State, 16)
	var throughHub atomic.Int32
	var away atomic.Bool
	var noTokens atomic.Int32
	connector := &tunnel.Connector{
		Member:  "one",
		Targets: map[string]tunnel.Target{"echo": echo},
		Dial: func(ctx context.Context) (net.Conn, error) {
			throughHub.Add(1)
			return new(net.Dialer).DialContext(ctx, "tcp", hub)
		},
		Direct: func(ctx context.Context, told tunnel.PortInfo) (net.Conn, error) {
			if away.Load() {
				return nil, errors.New("no route to host")
			}
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM([]byte(told.CA))
			dialer := portDialer(told.Address, "/tunnels/one", roots, "good")
			if noTokens.Add(-1) >= 0 {
				dialer.Token = func(context.Context) (string, error) {
					return "", apierrors.NewTooManyRequests("the server is busy", 1)
				}
			}
			return dialer.Dial(ctx)
		},
		OnStateChange: func(s tunnel.State) { states <- s },
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- connector.Run(ctx) }()
	defer func() { cancel(); <-ended }()

	if s := <-states; !s.Connected || s.Path != tunnel.ViaHub {
		t.Fatalf("the first state is %+v, want connected through the hub", s)
	}
	tunneltest.Eventually(t, "the member is connected", func() bool { return r.Connected("one") })
	before, err := r.DialMember(ctx, "one", "echo")
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	info = tunnel.Info{Port: &tunnel.PortInfo{Address: link.Address(), CA: ca.pem(), ServerName: portName}}
	mu.Unlock()
	r.SendInfoAll()
	if s := <-states; !s.Connected || s.Path != tunnel.ViaPort {
		t.Fatalf("after the gateway advertised the port, the state is %+v", s)
	}
	say := func(conn net.Conn) {
		t.Helper()
		if _, err := io.WriteString(conn, "hello"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
	}
	say(before)
	_ = before.Close()

	lose := func(then tunnel.Path) {
		t.Helper()
		link.Kill()
		if s := <-states; s.Connected {
			t.Fatalf("after the port's connection was killed, the state is %+v", s)
		}
		if s := <-states; !s.Connected || s.Path != then {
			t.Fatalf("then the state is %+v, want connected again through the %s", s, then)
		}
	}
	lose(tunnel.ViaPort)
	// Agents that got no token from a busy hub asked it for a tunnel instead, which was no less
	// work.
	noTokens.Store(1)
	link.Kill()
	again := <-states
	for !again.Connected {
		again = <-states
	}
	if again.Path != tunnel.ViaPort {
		t.Errorf("without a token for a moment it is connected through the %s", again.Path)
	}
	if asked := throughHub.Load(); asked != 1 {
		t.Errorf("the hub was asked %d times, want once, for the first session", asked)
	}
	mu.Lock()
	info = tunnel.Info{}
	mu.Unlock()
	away.Store(true)
	lose(tunnel.ViaHub)
	tunneltest.Eventually(t, "the member is connected again", func() bool { return r.Connected("one") })
	after, err := r.DialMember(ctx, "one", "echo")
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	say(after)
}

// When their gateways restarted, a thousand agents each asked the hub for a tunnel, although no
// gateway was up. An agent retries a port that does not answer, but not indefinitely.
func TestConnector_RetriesUnresponsivePort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		paths := make(chan string, 100)
		var refuses atomic.Bool
		r, atPort := runByTwoPaths(t, func() error {
			paths <- "hub"
			return nil
		}, func() error {
			if !refuses.Load() {
				paths <- "port"
				return nil
			}
			paths <- "refused"
			if len(paths)%2 == 0 {
				// A load balancer accepts the connection but has no backend.
				return fmt.Errorf("verifying the gateway: %w", io.EOF)
			}
			return errRefused
		})
		if first, second := <-paths, <-paths; first != "hub" || second != "port" {
			t.Fatalf("it went through the %s, then the %s", first, second)
		}
		<-atPort
		refuses.Store(true)
		lost := time.Now()
		r.Disconnect("one")
		asked := 0
		for path := range paths {
			if path == "hub" {
				break
			}
			asked++
		}
		// The wait before that attempt may have begun just before the time was over.
		if after := time.Since(lost); after < 10*time.Second || after > 40*time.Second || asked < 3 {
			t.Errorf("the hub was asked after %s, and the port %d times before", after, asked)
		}
	})
}

// All gateways were down for a minute while the hub was at its limit. 1,734 of 2,000 agents
// reconnected through the hub, which added to its load, and stayed there because they tried the
// port only every five minutes.
func TestConnector_FindsPortAgainAfterLongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		var inVain, throughHub atomic.Int32
		r, atPort := runByTwoPaths(t, func() error {
			if away.Load() {
				inVain.Add(1)
				return &tunnel.HubError{StatusCode: http.StatusServiceUnavailable}
			}
			throughHub.Add(1)
			return nil
		}, func() error {
			if away.Load() {
				return errRefused
			}
			return nil
		})
		<-atPort
		away.Store(true)
		r.Disconnect("one")
		time.Sleep(2 * time.Minute)
		if inVain.Load() == 0 {
			t.Error("nobody asked the hub, which may have known of a gateway elsewhere")
		}
		away.Store(false)
		<-atPort
		if got := throughHub.Load(); got != 1 {
			t.Errorf("%d tunnels came through the hub, want the first one", got)
		}
	})
}

var errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}

// runByTwoPaths runs an agent until the test ends; its gateway announces its port. The agent reaches
// the hub and the port unless these return an error. It reports each tunnel at the port.
func runByTwoPaths(t *testing.T, hub, port func() error) (*tunnel.Registry, <-chan struct{}) {
	t.Helper()
	r := tunneltest.NewRegistry(t, tunnel.Options{Info: func() tunnel.Info {
		return tunnel.Info{Replica: "gateway", Replicas: 1, Port: &tunnel.PortInfo{Address: "gateway:8091", CA: "-", ServerName: "gateway"}}
	}})
	let := func(err error) (net.Conn, error) {
		if err != nil {
			return nil, err
		}
		gateway, agent := net.Pipe()
		go func() { _ = r.Serve(context.Background(), "one", gateway) }()
		return agent, nil
	}
	atPort := make(chan struct{}, 100)
	connector := &tunnel.Connector{
		Member: "one", Targets: map[string]tunnel.Target{"echo": echo},
		Dial:   func(context.Context) (net.Conn, error) { return let(hub()) },
		Direct: func(context.Context, tunnel.PortInfo) (net.Conn, error) { return let(port()) },
		OnStateChange: func(s tunnel.State) {
			if s.Path == tunnel.ViaPort {
				atPort <- struct{}{}
			}
		},
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- connector.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return r, atPort
}

func TestParseInfo_RefusesPortWithoutValidCA(t *testing.T) {
	for name, message := range map[string]string{
		"no JSON":           "hello",
		"no port number":    `{"port":{"address":"host","ca":"x","serverName":"x"}}`,
		"no CA":             `{"port":{"address":"host:1","serverName":"x"}}`,
		"no name to verify": `{"port":{"address":"host:1","ca":"x"}}`,
	} {
		if _, err := tunnel.ParseInfo([]byte(message)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	info, err := tunnel.ParseInfo([]byte(`{"replica":"a","later":1,"port":{"address":"[::1]:1","ca":"x","serverName":"y"}}`))
	if err != nil || info.Replica != "a" || info.Port.Address != "[::1]:1" {
		t.Errorf("got %+v, %v", info, err)
	}
}

func FuzzParseInfo(f *testing.F) {
	f.Add([]byte(`{"replica":"a","replicas":2,"port":{"address":"host:8091","ca":"x","serverName":"y"}}`))
	f.Fuzz(func(t *testing.T, message []byte) {
		info, err := tunnel.ParseInfo(message)
		if err == nil && info.Port != nil && (info.Port.CA == "" || info.Port.ServerName == "") {
			t.Errorf("a port that nothing verifies was accepted: %+v", info.Port)
		}
	})
}

// pipes is a listener whose connections stay within the process.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	conn, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p pipes) Close() error { close(p); return nil }

func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

func TestPort_ClosesRefusedConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := newAuthority(t)
		port := &tunnel.Port{
			Registry:     tunneltest.NewRegistry(t, tunnel.Options{}),
			TLS:          &tls.Config{Certificates: []tls.Certificate{ca.issue(t, portName)}},
			Path:         func(string) (string, bool) { return "one", true },
			Authenticate: func(context.Context, string) (string, time.Time, bool, error) { return "", time.Time{}, false, nil },
		}
		ctx, cancel := context.WithCancel(t.Context())
		listener, ended := make(pipes), make(chan error, 1)
		go func() { ended <- port.Serve(ctx, listener) }()
		raw, gateway := net.Pipe()
		listener <- gateway
		conn := tls.Client(raw, &tls.Config{RootCAs: ca.pool(), ServerName: portName})
		reader := bufio.NewReader(conn)
		if _, err := io.WriteString(conn, "POST /tunnels/one HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer bad\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(reader, nil)
		if err != nil || response.StatusCode != http.StatusUnauthorized {
			t.Fatalf("%v, %v", response, err)
		}
		if _, err := io.ReadAll(response.Body); err != nil {
			t.Fatal(err)
		}
		// A client that sends nothing more would wait here indefinitely.
		if _, err := reader.ReadByte(); err != io.EOF {
			t.Errorf("the connection ended with %v", err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestPort_StoppingKeepsOtherProtocols(t *testing.T) {
	ca := newAuthority(t)
	taken, release := make(chan struct{}), make(chan struct{})
	port := &tunnel.Port{
		TLS: &tls.Config{Certificates: []tls.Certificate{ca.issue(t, portName)}},
		Others: map[string]func(context.Context, *tls.Conn){"h2": func(_ context.Context, conn *tls.Conn) {
			close(taken)
			<-release
			_, _ = io.WriteString(conn, "later")
			_ = conn.Close()
		}},
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- port.Serve(ctx, listener) }()
	conn, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{RootCAs: ca.pool(), ServerName: portName, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	<-taken
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	close(release)
	if got, err := io.ReadAll(conn); string(got) != "later" {
		t.Errorf("read %q, %v", got, err)
	}
}
