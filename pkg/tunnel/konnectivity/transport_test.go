// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	konnectivityclient "sigs.k8s.io/apiserver-network-proxy/konnectivity-client/pkg/client"

	"fleetgate.io/fleetgate/pkg/tunnel"
)

// path is a way from a dialer to a server on a member.
type path struct {
	name string
	// dial returns connections to the server.
	dial func(t testing.TB, server string) func(context.Context) (net.Conn, error)
	// halfClose and deadlines say what the ends on this path support.
	halfClose, deadlines bool
}

// paths are all combinations of dialers and agents.
func paths() []path {
	return []path{
		{name: "gateway to our agent", dial: viaGateway, halfClose: true, deadlines: true},
		{name: "gateway to an agent of upstream's", dial: viaUpstreamAgent, deadlines: true},
		{name: "gateway to our agent over IPv6", dial: viaIPv6, halfClose: true, deadlines: true},
		{name: "HTTP CONNECT to our agent", dial: viaConnect, halfClose: true, deadlines: true},
		{name: "HTTP CONNECT to an agent of upstream's", dial: viaConnectAndUpstreamAgent, deadlines: true},
		{name: "konnectivity-client, single use", dial: viaSingleUse},
		{name: "konnectivity-client, reusable", dial: viaReusable},
	}
}

func viaGateway(t testing.TB, server string) func(context.Context) (net.Conn, error) {
	g := startGateway(t, gatewayOptions{})
	g.join(t, "m", toAPIServer(server))
	return func(ctx context.Context) (net.Conn, error) { return g.registry.DialMember(ctx, "m", tunnel.APIServer) }
}

func viaIPv6(t testing.TB, server string) func(context.Context) (net.Conn, error) {
	g := startGateway(t, gatewayOptions{listen: "[::1]:0"})
	g.join(t, "m", toAPIServer(startTCP(t, "tcp6", "[::1]:0", func(c *net.TCPConn) { relay(c, server) })))
	return func(ctx context.Context) (net.Conn, error) { return g.registry.DialMember(ctx, "m", tunnel.APIServer) }
}

// relay pipes to a server that listens on IPv4.
func relay(c *net.TCPConn, server string) {
	handle, err := tunnel.TCP(server)(context.Background())
	if err == nil {
		_ = handle(context.Background(), c)
	}
}

func viaUpstreamAgent(t testing.TB, server string) func(context.Context) (net.Conn, error) {
	g := startGateway(t, gatewayOptions{agents: func(o *AgentServerOptions) { o.APIServer = server }})
	go g.upstream(t, "m").serveLikeUpstream()
	return func(ctx context.Context) (net.Conn, error) { return g.registry.DialMember(ctx, "m", tunnel.APIServer) }
}

func viaConnect(t testing.TB, server string) func(context.Context) (net.Conn, error) {
	g := startGateway(t, gatewayOptions{})
	g.join(t, "m", toAPIServer(server))
	return g.connectDialer(t, "root", "m:443")
}

func viaConnectAndUpstreamAgent(t testing.TB, server string) func(context.Context) (net.Conn, error) {
	g := startGateway(t, gatewayOptions{agents: func(o *AgentServerOptions) { o.APIServer = server }})
	go g.upstream(t, "m").serveLikeUpstream()
	return g.connectDialer(t, "root", "m:443")
}

// connectDialer dials with HTTP CONNECT, as kube-apiserver's EgressSelector does: TLS without an
// application protocol, and the request.
func (g *gateway) connectDialer(t testing.TB, user, address string) func(context.Context) (net.Conn, error) {
	config := g.clientTLS(g.frontendCA.issue(t, user))
	return func(ctx context.Context) (net.Conn, error) {
		return connectTo(ctx, g.frontendPort, config, address, "")
	}
}

func connectTo(ctx context.Context, port string, config *tls.Config, address, token string) (net.Conn, error) {
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", port)
	if err != nil {
		return nil, err
	}
	authorization := ""
	if token != "" {
		authorization = "Proxy-Authorization: Bearer " + token + "\r\n"
	}
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n", address, authorization); err != nil {
		_ = conn.Close()
		return nil, err
	}
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, &http.Request{Method: http.MethodConnect})
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(response.Body)
		_ = conn.Close()
		return nil, fmt.Errorf("%s: %s", response.Status, body)
	}
	if reader.Buffered() > 0 {
		return nil, errors.New("the server sent before it was asked")
	}
	return conn, nil
}

func (g *gateway) grpcOptions(t testing.TB, user string) []grpc.DialOption {
	config := g.clientTLS(g.frontendCA.issue(t, user))
	return []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(config))}
}

func viaSingleUse(t testing.TB, server string) func(context.Context) (net.Conn, error) {
	g := startGateway(t, gatewayOptions{})
	g.join(t, "m", toAPIServer(server))
	options := g.grpcOptions(t, "root")
	return func(ctx context.Context) (net.Conn, error) {
		once, err := konnectivityclient.CreateSingleUseGrpcTunnelWithContext(ctx, t.Context(), "passthrough:///"+g.frontendPort, options...)
		if err != nil {
			return nil, err
		}
		return once.DialContext(ctx, "tcp", "m:443")
	}
}

func viaReusable(t testing.TB, server string) func(context.Context) (net.Conn, error) {
	g := startGateway(t, gatewayOptions{})
	g.join(t, "m", toAPIServer(server))
	reusable, err := konnectivityclient.CreateGRPCTunnel(t.Context(), "passthrough:///"+g.frontendPort, g.grpcOptions(t, "root")...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reusable.Close() })
	return func(ctx context.Context) (net.Conn, error) { return reusable.DialContext(ctx, "tcp", "m:443") }
}

// onEveryPath runs a test for each path, with its own server.
func onEveryPath(t *testing.T, serve func(*net.TCPConn), test func(t *testing.T, p path, dial func() net.Conn)) {
	for _, p := range paths() {
		t.Run(p.name, func(t *testing.T) {
			dial := p.dial(t, startTCP(t, "tcp", "127.0.0.1:0", serve))
			test(t, p, func() net.Conn {
				t.Helper()
				conn, err := dial(t.Context())
				if err != nil {
					t.Fatalf("dialing: %v", err)
				}
				t.Cleanup(func() { _ = conn.Close() })
				return conn
			})
		})
	}
}

// large is more than all windows and queues on the path hold.
const large = 32 << 20

func TestPaths_TransferInBothDirectionsAtOnce(t *testing.T) {
	onEveryPath(t, echo, func(t *testing.T, _ path, dial func() net.Conn) {
		conn := dial()
		var writing sync.WaitGroup
		writing.Go(func() {
			if _, err := io.CopyBuffer(struct{ io.Writer }{conn}, &pattern{n: large}, make([]byte, 100_000)); err != nil {
				t.Errorf("writing: %v", err)
			}
		})
		if _, err := io.CopyN(&pattern{}, conn, large); err != nil {
			t.Errorf("reading: %v", err)
		}
		writing.Wait()
	})
}

func TestPaths_OneByteAtATime(t *testing.T) {
	const bytes = 2000
	onEveryPath(t, echo, func(t *testing.T, _ path, dial func() net.Conn) {
		conn := dial()
		var writing sync.WaitGroup
		writing.Go(func() {
			source := &pattern{n: bytes}
			for range bytes {
				if _, err := io.CopyN(conn, source, 1); err != nil {
					t.Errorf("writing: %v", err)
					return
				}
			}
		})
		if _, err := io.CopyBuffer(struct{ io.Writer }{&pattern{}}, struct{ io.Reader }{io.LimitReader(conn, bytes)}, make([]byte, 1)); err != nil {
			t.Errorf("reading: %v", err)
		}
		writing.Wait()
	})
}

func TestPaths_ServersEndIsAnEnd(t *testing.T) {
	sendAndClose := func(c *net.TCPConn) {
		_, _ = io.CopyN(io.Discard, c, 1)
		_, _ = io.Copy(c, &pattern{n: 1 << 20})
	}
	onEveryPath(t, sendAndClose, func(t *testing.T, _ path, dial func() net.Conn) {
		conn := dial()
		if _, err := conn.Write([]byte{0}); err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(&pattern{}, conn); err != nil || n != 1<<20 {
			t.Errorf("read %d bytes, then %v", n, err)
		}
	})
}

func TestPaths_HalfCloseLeavesTheOtherHalfOpen(t *testing.T) {
	onEveryPath(t, echo, func(t *testing.T, p path, dial func() net.Conn) {
		if !p.halfClose {
			t.Skip("the protocol has no half close between these ends")
		}
		conn := dial()
		const bytes = 4 << 20
		var writing sync.WaitGroup
		writing.Go(func() {
			if _, err := io.Copy(struct{ io.Writer }{conn}, &pattern{n: bytes}); err != nil {
				t.Errorf("writing: %v", err)
			}
			if err := conn.(halfCloser).CloseWrite(); err != nil {
				t.Errorf("ending the writing half: %v", err)
			}
		})
		if n, err := io.Copy(&pattern{}, conn); err != nil || n != bytes {
			t.Errorf("read %d bytes, then %v", n, err)
		}
		writing.Wait()
	})
}

type halfCloser interface{ CloseWrite() error }

func TestPaths_DeadlinesEndCallsAndNotTheConnection(t *testing.T) {
	onEveryPath(t, echo, func(t *testing.T, p path, dial func() net.Conn) {
		if !p.deadlines {
			t.Skip("upstream's library has no deadlines (K10)")
		}
		conn := dial()
		past := time.Unix(1, 0)
		if err := conn.SetReadDeadline(past); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("reading after the deadline: %v", err)
		}
		if err := conn.SetDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
			t.Errorf("reading once the deadline is gone: %v", err)
		}
	})
}

func TestPaths_DeadlineWakesWaitingReader(t *testing.T) {
	dial := viaGateway(t, startTCP(t, "tcp", "127.0.0.1:0", echo))
	conn, err := dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var reading sync.WaitGroup
	reading.Go(func() {
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("reading: %v", err)
		}
	})
	_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
	reading.Wait()
}

// A reader that stops must neither stop nor slow down other users of the same tunnel. It still gets
// all bytes when it resumes, if both ends are ours.
func TestPaths_SlowReaderStallsOnlyItself(t *testing.T) {
	const bytes = 16 << 20
	talk := func(c *net.TCPConn) {
		ask := make([]byte, 1)
		if _, err := io.ReadFull(c, ask); err != nil {
			return
		}
		if ask[0] == 'd' {
			_, _ = io.Copy(c, &pattern{n: bytes})
			return
		}
		echo(c)
	}
	for _, p := range paths() {
		if !p.halfClose {
			continue // for others see TestK6_SlowFrontendDoesNotBlockOthers
		}
		t.Run(p.name, func(t *testing.T) {
			dial := p.dial(t, startTCP(t, "tcp", "127.0.0.1:0", talk))
			slow, victim := mustOpen(t, dial), mustOpen(t, dial)
			if _, err := slow.Write([]byte("d")); err != nil {
				t.Fatal(err)
			}
			roundTrips(t, victim, 500)
			if n, err := io.Copy(&pattern{}, slow); err != nil || n != bytes {
				t.Errorf("the slow reader got %d bytes, then %v", n, err)
			}
		})
	}
}

func mustOpen(t *testing.T, dial func(context.Context) (net.Conn, error)) net.Conn {
	t.Helper()
	conn, err := dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// roundTrips echoes n times a text that begins with 'e'.
func roundTrips(t *testing.T, conn net.Conn, n int) {
	t.Helper()
	if _, err := conn.Write([]byte("e")); err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 10_000)
	for range n {
		if _, err := conn.Write(block); err != nil {
			t.Fatalf("writing: %v", err)
		}
		if _, err := io.ReadFull(conn, block); err != nil {
			t.Fatalf("reading: %v", err)
		}
	}
}

// A target that does not read stops only its writer, whose deadline still works.
func TestPaths_SlowTargetStallsOnlyItsWriter(t *testing.T) {
	release := make(chan struct{})
	talk := func(c *net.TCPConn) {
		ask := make([]byte, 1)
		if _, err := io.ReadFull(c, ask); err != nil {
			return
		}
		if ask[0] == 's' {
			<-release
			_, _ = io.Copy(io.Discard, c)
			return
		}
		echo(c)
	}
	defer close(release)
	dial := viaGateway(t, startTCP(t, "tcp", "127.0.0.1:0", talk))
	slow, victim := mustOpen(t, dial), mustOpen(t, dial)
	if _, err := slow.Write([]byte("s")); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() {
		_, err := io.Copy(struct{ io.Writer }{slow}, &pattern{n: 1 << 40})
		written <- err
	}()
	roundTrips(t, victim, 500)
	_ = slow.SetWriteDeadline(time.Unix(1, 0))
	if err := <-written; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the writer ended with %v", err)
	}
}

func TestPaths_KilledAgentFailsWaitingCalls(t *testing.T) {
	g := startGateway(t, gatewayOptions{})
	var mu sync.Mutex
	var network net.Conn
	g.join(t, "m", func(c *Connector) {
		toAPIServer(startTCP(t, "tcp", "127.0.0.1:0", echo))(c)
		c.DialContext = func(ctx context.Context, n, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, n, address)
			mu.Lock()
			network = conn
			mu.Unlock()
			return conn, err
		}
	})
	conn := g.mustDial(t, "m")
	mu.Lock()
	_ = network.Close()
	mu.Unlock()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, tunnel.ErrSessionClosed) {
		t.Errorf("reading: %v", err)
	}
	if _, err := conn.Write(make([]byte, 1)); !errors.Is(err, tunnel.ErrSessionClosed) {
		t.Errorf("writing: %v", err)
	}
	eventually(t, "the agent is back", func() bool {
		conn, err := g.registry.DialMember(t.Context(), "m", tunnel.APIServer)
		if err != nil {
			return false
		}
		_ = conn.Close()
		return true
	})
}

func TestPaths_KilledServerResetsConnection(t *testing.T) {
	reset := func(c *net.TCPConn) {
		_, _ = io.CopyN(io.Discard, c, 1)
		_ = c.SetLinger(0)
		_ = c.Close()
	}
	dial := viaGateway(t, startTCP(t, "tcp", "127.0.0.1:0", reset))
	conn := mustOpen(t, dial)
	if _, err := conn.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, tunnel.ErrReset) {
		t.Errorf("reading from a server that reset the connection: %v", err)
	}
}

func TestPaths_ResetReachesTheServer(t *testing.T) {
	seen := make(chan error, 1)
	dial := viaGateway(t, startTCP(t, "tcp", "127.0.0.1:0", func(c *net.TCPConn) {
		_, err := io.Copy(io.Discard, c)
		seen <- err
	}))
	conn := mustOpen(t, dial)
	_ = conn.(interface{ Reset() error }).Reset()
	if err := <-seen; err == nil {
		t.Error("the server saw an orderly end")
	}
}

func TestPaths_ClosingLeaksNothing(t *testing.T) {
	g := startGateway(t, gatewayOptions{})
	g.join(t, "m", toAPIServer(startTCP(t, "tcp", "127.0.0.1:0", echo)))
	dial := g.connectDialer(t, "root", "m:443")
	for range 50 {
		conn, err := dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
		direct, err := g.registry.DialMember(t.Context(), "m", tunnel.APIServer)
		if err != nil {
			t.Fatal(err)
		}
		_ = direct.Close()
	}
	session := g.agents.sessionsOf("m")[0]
	eventually(t, "no connection is left", func() bool {
		return session.multiplexer.open() == 0 && session.open.Load() == 0 && g.frontends.open.Load() == 0
	})
}
