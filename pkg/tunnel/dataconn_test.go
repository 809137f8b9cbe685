// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/tunneltest"
)

// dataBed is a gateway with data connections. Agents reach its port over one link for sessions, and
// another for data connections.
type dataBed struct {
	*tunnel.Registry
	ca            *authority
	session, data *tunneltest.Link
	// opened counts the data connections that agents have opened, tried their attempts.
	opened, tried atomic.Int32
}

func newDataBed(t testing.TB) *dataBed {
	t.Helper()
	return newDataBedOf(t, true)
}

func newDataBedOf(t testing.TB, enabled bool) *dataBed {
	t.Helper()
	b := &dataBed{ca: newAuthority(t)}
	b.Registry = tunneltest.NewRegistry(t, tunnel.Options{DataConnections: enabled, Info: func() tunnel.Info {
		return tunnel.Info{Port: &tunnel.PortInfo{Address: b.session.Address(), CA: b.ca.pem(), ServerName: portName}}
	}})
	port := b.listen(t, b.Registry)
	b.session, b.data = tunneltest.NewLink(t, port), tunneltest.NewLink(t, port)
	return b
}

// listen runs a port that accepts every agent.
func (b *dataBed) listen(t testing.TB, r *tunnel.Registry) string {
	t.Helper()
	return startPort(t, r, b.ca, func(p *tunnel.Port) {
		p.IsAgentOf = func(context.Context, string, string) (bool, error) { return true, nil }
	})
}

// opener opens a data connection at an address.
type opener func(ctx context.Context, address, nonce string) (*net.TCPConn, error)

// open is what an agent of the member does.
func (b *dataBed) open(member string) opener {
	return func(ctx context.Context, address, nonce string) (*net.TCPConn, error) {
		b.tried.Add(1)
		conn, err := portDialer(address, "/tunnels/"+member, b.ca.pool(), nonce).DialData(ctx)
		if err == nil {
			b.opened.Add(1)
		}
		return conn, err
	}
}

// join connects an agent at the port, and waits for that. A nil opener is an agent without data
// connections.
func (b *dataBed) join(t testing.TB, member string, open opener, targets map[string]tunnel.Target) {
	t.Helper()
	hub := tunneltest.Serve(t, "127.0.0.1", func(c *net.TCPConn) { _ = b.Serve(context.Background(), member, c) })
	atPort := make(chan struct{}, 100)
	connector := &tunnel.Connector{
		Member: member, Targets: targets,
		Dial: func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", hub) },
		Direct: func(ctx context.Context, port tunnel.PortInfo) (net.Conn, error) {
			return portDialer(port.Address, "/tunnels/"+member, b.ca.pool(), "good").Dial(ctx)
		},
		OnStateChange: func(s tunnel.State) {
			if s.Path == tunnel.ViaPort {
				atPort <- struct{}{}
			}
		},
	}
	if open != nil {
		connector.Data = func(ctx context.Context, _ tunnel.PortInfo, nonce string) (*net.TCPConn, error) {
			return open(ctx, b.data.Address(), nonce)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- connector.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	<-atPort
}

func (b *dataBed) dial(t *testing.T, member string) net.Conn {
	t.Helper()
	return dialTarget(t, b.Registry, member, tunnel.APIServer)
}

func dialTarget(t *testing.T, gateway *tunnel.Registry, member, target string) net.Conn {
	t.Helper()
	conn, err := gateway.DialMember(t.Context(), member, target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func apiServerAt(address string) map[string]tunnel.Target {
	return map[string]tunnel.Target{tunnel.APIServer: tunnel.TCP(address), tunnel.Agent: tunnel.TCP(address)}
}

// connectData has a member for each target, since only the API server is reached like this.
func connectData(t *testing.T, targets ...string) (tunneltest.Dial, *tunneltest.Link) {
	b := newDataBed(t)
	b.data = b.session
	members := map[string]string{}
	for i, address := range targets {
		members[address] = fmt.Sprintf("member-%d", i)
		b.join(t, members[address], b.open(members[address]), apiServerAt(address))
	}
	return func(ctx context.Context, address string) (net.Conn, error) {
		return b.DialMember(ctx, members[address], tunnel.APIServer)
	}, b.session
}

func TestDataConnection_IsTransport(t *testing.T) {
	// Each connection is a TLS handshake here.
	tunneltest.RunTransport(t, tunneltest.Transport{Connect: connectData, Many: 1000})
}

// Without a session that reads, only a data connection can pass more than a window.
func TestDataConnection_CarriesBytesInsteadOfSession(t *testing.T) {
	b := newDataBed(t)
	b.join(t, "one", b.open("one"), apiServerAt(tunneltest.Serve(t, "127.0.0.1", tunneltest.Echo)))
	conn := b.dial(t, "one")
	b.session.Cut()
	defer b.session.Heal()
	pingPong(t, conn)
	if b.opened.Load() != 1 {
		t.Errorf("%d data connections were opened", b.opened.Load())
	}
}

func TestDataConnection_IsOnlyForTheAPIServer(t *testing.T) {
	b := newDataBed(t)
	b.join(t, "one", b.open("one"), apiServerAt(tunneltest.Serve(t, "127.0.0.1", tunneltest.Echo)))
	pingPong(t, dialTarget(t, b.Registry, "one", tunnel.Agent))
	if b.tried.Load() != 0 {
		t.Error("the bytes for the agent itself, which are plain text, had a data connection")
	}
}

func TestDataConnection_IsOnlyWithGatewayThatWantsIt(t *testing.T) {
	b := newDataBedOf(t, false)
	b.join(t, "one", b.open("one"), apiServerAt(tunneltest.Serve(t, "127.0.0.1", tunneltest.Echo)))
	pingPong(t, b.dial(t, "one"))
	if b.tried.Load() != 0 {
		t.Error("the gateway asked for a data connection")
	}
}

func TestDataConnection_FallsBackToSession(t *testing.T) {
	ca := newAuthority(t)
	for name, open := range map[string]func(t *testing.T, b *dataBed) opener{
		"of an agent that does not know it": func(*testing.T, *dataBed) opener { return nil },
		"of an agent that cannot connect": func(_ *testing.T, b *dataBed) opener {
			return func(context.Context, string, string) (*net.TCPConn, error) {
				b.tried.Add(1)
				return nil, errRefused
			}
		},
		"of an agent whose network drops the connection": func(_ *testing.T, b *dataBed) opener {
			b.data.Cut()
			return b.open("one")
		},
		"of an agent that always reaches another gateway": func(t *testing.T, b *dataBed) opener {
			b.data = tunneltest.NewLink(t, b.listen(t, tunneltest.NewRegistry(t, tunnel.Options{})))
			return b.open("one")
		},
		// Bytes below the TLS of the proxy would reach nobody.
		"of an agent behind an HTTPS proxy": func(t *testing.T, b *dataBed) opener {
			proxy := forwardProxy(t, &tls.Config{Certificates: []tls.Certificate{ca.issue(t, "127.0.0.1")}}, b.data.Address(), make(chan string, 100))
			egress := tunnel.EgressOf("https://"+proxy, "")
			egress.TLS = &tls.Config{RootCAs: ca.pool(), VerifyConnection: func(tls.ConnectionState) error { return nil }, InsecureSkipVerify: true}
			return func(ctx context.Context, _, nonce string) (*net.TCPConn, error) {
				b.tried.Add(1)
				dialer := portDialer("gateway.example.com:443", "/tunnels/one", b.ca.pool(), nonce)
				dialer.DialContext = egress.DialContext
				return dialer.DialData(ctx)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newDataBed(t)
			b.join(t, "one", open(t, b), apiServerAt(tunneltest.Serve(t, "127.0.0.1", tunneltest.Echo)))
			pingPong(t, b.dial(t, "one"))
			tried := b.tried.Load()
			pingPong(t, b.dial(t, "one"))
			if b.opened.Load() != 0 || b.tried.Load() != tried {
				t.Errorf("%d were opened; %d were tried for the first connection, %d after the second one", b.opened.Load(), tried, b.tried.Load())
			}
		})
	}
}

func TestDataConnection_PassesProxies(t *testing.T) {
	b := newDataBed(t)
	// A passing proxy routes by the server name in the handshake, and drops anything else.
	onlyTLS := tunneltest.Serve(t, "127.0.0.1", func(c *net.TCPConn) {
		const handshake = 0x16
		first := make([]byte, 1)
		if _, err := io.ReadFull(c, first); err != nil || first[0] != handshake {
			return
		}
		far, err := net.Dial("tcp", b.data.Address())
		if err != nil {
			return
		}
		defer far.Close()
		go func() { _, _ = io.Copy(far, io.MultiReader(bytes.NewReader(first), c)) }()
		_, _ = io.Copy(c, far)
	})
	forward := forwardProxy(t, nil, b.data.Address(), make(chan string, 100))
	for name, open := range map[string]opener{
		"one that passes only TLS": func(ctx context.Context, _, nonce string) (*net.TCPConn, error) {
			return b.open("one")(ctx, onlyTLS, nonce)
		},
		"a forward proxy": func(ctx context.Context, _, nonce string) (*net.TCPConn, error) {
			dialer := portDialer("gateway.example.com:443", "/tunnels/two", b.ca.pool(), nonce)
			dialer.DialContext = tunnel.EgressOf("http://"+forward, "").DialContext
			conn, err := dialer.DialData(ctx)
			if err == nil {
				b.opened.Add(1)
			}
			return conn, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			member := map[bool]string{true: "two", false: "one"}[name == "a forward proxy"]
			b.join(t, member, open, apiServerAt(tunneltest.Serve(t, "127.0.0.1", tunneltest.Echo)))
			before := b.opened.Load()
			pingPong(t, b.dial(t, member))
			if b.opened.Load() != before+1 {
				t.Error("the session carries the bytes")
			}
		})
	}
}

// Several gateways share the address of the port.
func TestDataConnection_FindsGatewayBehindLoadBalancer(t *testing.T) {
	b := newDataBed(t)
	other := b.listen(t, tunneltest.NewRegistry(t, tunnel.Options{DataConnections: true}))
	b.join(t, "one", func(ctx context.Context, address, nonce string) (*net.TCPConn, error) {
		if b.tried.Load() < 3 {
			address = other
		}
		return b.open("one")(ctx, address, nonce)
	}, apiServerAt(tunneltest.Serve(t, "127.0.0.1", tunneltest.Echo)))
	pingPong(t, b.dial(t, "one"))
	if b.opened.Load() != 1 || b.tried.Load() != 4 {
		t.Errorf("%d were opened after %d attempts, want 1 after 4", b.opened.Load(), b.tried.Load())
	}
}

// misdirected fails unless the gateway does not know the nonce.
func misdirected(t *testing.T, what string, conn *net.TCPConn, err error) {
	t.Helper()
	var refused *tunnel.HubError
	if !errors.As(err, &refused) || refused.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("%s: got %v, want status 421", what, err)
	}
	if conn != nil {
		_ = conn.Close()
	}
}

func TestDataConnection_NonceIsValidOnce(t *testing.T) {
	b := newDataBed(t)
	var used string
	b.join(t, "one", func(ctx context.Context, address, nonce string) (*net.TCPConn, error) {
		used = nonce
		opened, err := b.open("one")(ctx, address, nonce)
		again, againErr := b.open("one")(ctx, address, nonce)
		misdirected(t, "a nonce in use", again, againErr)
		return opened, err
	}, apiServerAt(tunneltest.Serve(t, "127.0.0.1", tunneltest.Echo)))
	pingPong(t, b.dial(t, "one"))
	conn, err := b.open("one")(t.Context(), b.data.Address(), used)
	misdirected(t, "a replayed nonce", conn, err)
	for name, nonce := range map[string]string{"no nonce": "", "no hexadecimal": "x", "a guess": "00112233445566778899aabbccddeeff"} {
		conn, err := b.open("one")(t.Context(), b.data.Address(), nonce)
		misdirected(t, name, conn, err)
	}
}

func TestDataConnection_NonceBelongsToItsMember(t *testing.T) {
	b := newDataBed(t)
	b.join(t, "one", func(ctx context.Context, address, nonce string) (*net.TCPConn, error) {
		conn, err := b.open("two")(ctx, address, nonce)
		misdirected(t, "another member's nonce", conn, err)
		return b.open("one")(ctx, address, nonce)
	}, apiServerAt(tunneltest.Serve(t, "127.0.0.1", tunneltest.Echo)))
	pingPong(t, b.dial(t, "one"))
	if b.opened.Load() != 0 {
		t.Error("a nonce that was shown to the gateway was valid afterwards")
	}
}

func TestDataConnection_NonceEndsWithItsDial(t *testing.T) {
	b := newDataBed(t)
	ctx, cancel := context.WithCancel(t.Context())
	dialed, result := make(chan struct{}), make(chan error, 1)
	b.join(t, "one", func(ctx context.Context, address, nonce string) (*net.TCPConn, error) {
		cancel()
		<-dialed
		_, err := b.open("one")(context.WithoutCancel(ctx), address, nonce)
		result <- err
		return nil, errRefused
	}, apiServerAt(tunneltest.Serve(t, "127.0.0.1", tunneltest.Echo)))
	if _, err := b.DialMember(ctx, "one", tunnel.APIServer); !errors.Is(err, context.Canceled) {
		t.Errorf("the dial ended with %v", err)
	}
	close(dialed)
	misdirected(t, "after the dial", nil, <-result)
}

// A session has 16 nonces at a time.
func TestDataConnection_LimitsNonces(t *testing.T) {
	b := newDataBed(t)
	const limit = 16
	release, ended := make(chan struct{}), make(chan error, limit)
	b.join(t, "one", func(ctx context.Context, _, _ string) (*net.TCPConn, error) {
		b.tried.Add(1)
		<-release
		return nil, errRefused
	}, apiServerAt(tunneltest.Serve(t, "127.0.0.1", tunneltest.Echo)))
	for range limit {
		go func() {
			conn, err := b.DialMember(t.Context(), "one", tunnel.APIServer)
			if err == nil {
				_ = conn.Close()
			}
			ended <- err
		}()
	}
	eventually(t, func() bool { return b.tried.Load() == limit })
	pingPong(t, b.dial(t, "one")) // It does not wait for release.
	close(release)
	for range limit {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// A client must not send bytes before it has the response: the gateway could read them as TLS or below TLS.
func TestDataConnection_RefusesBytesBeforeTheResponse(t *testing.T) {
	b := newDataBed(t)
	b.join(t, "one", func(_ context.Context, address, nonce string) (*net.TCPConn, error) {
		conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: b.ca.pool(), ServerName: portName})
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		_, err = fmt.Fprintf(conn, "POST /tunnels/one HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: %s\r\nAuthorization: Bearer %s\r\n\r\nearly", tunnel.DataProtocol, nonce)
		if err != nil {
			return nil, err
		}
		if _, err := io.ReadAll(conn); err != nil {
			t.Errorf("the connection ended with %v", err)
		}
		return nil, errRefused
	}, apiServerAt(tunneltest.Serve(t, "127.0.0.1", tunneltest.Echo)))
	pingPong(t, b.dial(t, "one"))
}

func TestDataConnection_EndsWithItsSession(t *testing.T) {
	for name, end := range map[string]func(*dataBed){
		"when the identity is revoked":   func(b *dataBed) { b.Disconnect("one") },
		"when the session's path breaks": func(b *dataBed) { b.session.Kill() },
		"when its own path drops everything": func(b *dataBed) {
			b.data.Cut()
			b.Disconnect("one")
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newDataBed(t)
			target := make(chan error, 1)
			b.join(t, "one", b.open("one"), apiServerAt(tunneltest.Serve(t, "127.0.0.1", func(c *net.TCPConn) {
				_, err := io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c})
				target <- err
			})))
			conn := b.dial(t, "one")
			pingPong(t, conn)
			end(b)
			if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, tunnel.ErrSessionClosed) && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the gateway's end ended with %v, want the end of the session or a reset", err)
			}
			if err := <-target; !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the API server's connection ended with %v, want a reset", err)
			}
		})
	}
}

// The session stays, and so does the way to the member.
func TestDataConnection_ThatBreaksLeavesTheSession(t *testing.T) {
	b := newDataBed(t)
	b.join(t, "one", b.open("one"), apiServerAt(tunneltest.Serve(t, "127.0.0.1", tunneltest.Echo)))
	conn := b.dial(t, "one")
	pingPong(t, conn)
	b.data.Kill()
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("it ended with %v, want a failure", err)
	}
	pingPong(t, b.dial(t, "one"))
	if b.opened.Load() != 2 {
		t.Errorf("%d data connections were opened, want another one", b.opened.Load())
	}
}

// A session ends when nothing has arrived for 25 s.
func TestDataConnection_DetectsLossLikeSession(t *testing.T) {
	b := newDataBed(t)
	settings := make(chan [3]int, 1)
	b.join(t, "one", func(ctx context.Context, address, nonce string) (*net.TCPConn, error) {
		conn, err := b.open("one")(ctx, address, nonce)
		if err != nil {
			return nil, err
		}
		raw, err := conn.SyscallConn()
		if err != nil {
			return nil, err
		}
		var got [3]int
		_ = raw.Control(func(fd uintptr) {
			for i, option := range []int{syscall.TCP_KEEPIDLE, syscall.TCP_KEEPINTVL, syscall.TCP_KEEPCNT} {
				got[i], _ = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, option)
			}
		})
		settings <- got
		return conn, nil
	}, apiServerAt(tunneltest.Serve(t, "127.0.0.1", tunneltest.Echo)))
	pingPong(t, b.dial(t, "one"))
	if got := <-settings; got != [3]int{10, 5, 3} {
		t.Errorf("idle time, interval and number of keepalive probes are %v", got)
	}
}

// The gateway's port is TLS for everyone: neither side may skip the verification.
func TestDataConnection_VerifiesTheGateway(t *testing.T) {
	b := newDataBed(t)
	_, err := portDialer(b.data.Address(), "/tunnels/one", newAuthority(t).pool(), "00").DialData(t.Context())
	var unknown x509.UnknownAuthorityError
	if !errors.As(err, &unknown) {
		t.Errorf("got %v", err)
	}
}

func TestDataConnection_LeadsToGatewayThatAsks(t *testing.T) {
	b := newDataBed(t)
	asking, _ := startReplicaOf(t, tunneltest.NewRegistry(t, tunnel.Options{DataConnections: true}), "gateway-1", b.ca)
	holding, _ := startReplicaOf(t, b.Registry, "gateway-2", b.ca)
	port := b.listen(t, asking.Registry)
	b.join(t, "one", func(ctx context.Context, address, nonce string) (*net.TCPConn, error) {
		if b.tried.Load() > 0 {
			address = port // Both gateways have the same address.
		}
		return b.open("one")(ctx, address, nonce)
	}, apiServerAt(tunneltest.Serve(t, "127.0.0.1", tunneltest.Echo)))
	asking.addresses <- serving(holding.address)
	eventually(t, func() bool { return asking.Reachable("one") })
	conn := dialTarget(t, asking.Registry, "one", tunnel.APIServer)
	pingPong(t, conn)
	if b.opened.Load() != 1 || b.tried.Load() != 2 {
		t.Errorf("%d were opened after %d attempts, want 1 after 2", b.opened.Load(), b.tried.Load())
	}
	b.Disconnect("one")
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("with the session of the other gateway it ended with %v, want a failure", err)
	}
}

// The gateways have addresses of their own.
func TestDataConnection_StaysAtGatewayWithSession(t *testing.T) {
	b := newDataBed(t)
	asking, _ := startReplicaOf(t, tunneltest.NewRegistry(t, tunnel.Options{DataConnections: true}), "gateway-1", b.ca)
	holding, _ := startReplicaOf(t, b.Registry, "gateway-2", b.ca)
	b.join(t, "one", b.open("one"), apiServerAt(tunneltest.Serve(t, "127.0.0.1", tunneltest.Echo)))
	asking.addresses <- serving(holding.address)
	eventually(t, func() bool { return asking.Reachable("one") })
	for range 2 {
		pingPong(t, dialTarget(t, asking.Registry, "one", tunnel.APIServer))
	}
	// The gateway with the session offers one of its own for the second connection.
	if b.opened.Load() != 1 || b.tried.Load() != 11 {
		t.Errorf("%d were opened after %d attempts, want 1 after 10 for the first connection and 1 for the second", b.opened.Load(), b.tried.Load())
	}
}
