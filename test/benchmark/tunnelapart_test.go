// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/native"
	"fleetgate.io/fleetgate/pkg/tunnel/tunneltest"
)

const (
	// farEndVariable makes this program the member's end of a path: the agent of a tunnel to the
	// gateway at that address, or a server with TLS if it is farEndTLS. After the prefix
	// farEndAtPort, the agent moves to the gateway's port, and the server behind it has TLS.
	farEndVariable = "FLEETGATE_FAR_END"
	farEndTLS      = "tls"
	farEndAtPort   = "port:"
	// The CPU of each end.
	gatewayCPU, memberCPU = 0, 1
)

// tunnelsApart are the baseline and a tunnel whose ends have a CPU each, like a gateway and a
// member: client and gateway share one, agent and server the other. A machine with one CPU has
// none.
func tunnelsApart() []tunneltest.Path {
	if runtime.NumCPU() <= memberCPU {
		return nil
	}
	return []tunneltest.Path{
		apart("direct-tls-apart", func(b *testing.B) (*farEnd, tunneltest.BenchmarkDialer) {
			_, client := tunneltest.BenchmarkTLS()
			far := startFarEnd(b, farEndTLS)
			return far, func() (net.Conn, error) { return tls.Dial("tcp", far.server, client) }
		}),
		apart("native-apart", func(b *testing.B) (*farEnd, tunneltest.BenchmarkDialer) {
			secured, _ := tunneltest.BenchmarkTLS()
			registry := tunneltest.NewRegistry(b, tunnel.Options{MaxStreamsPerSession: tunnelStreams})
			far := startFarEnd(b, tunneltest.Serve(b, "127.0.0.1", func(c *net.TCPConn) {
				_ = registry.Serve(b.Context(), tunnelMember, tls.Server(native.Batch(c), secured))
			}))
			tunneltest.Eventually(b, "the member is connected", func() bool { return registry.Connected(tunnelMember) })
			return far, func() (net.Conn, error) { return registry.DialMember(b.Context(), tunnelMember, tunnel.APIServer) }
		}),
		// The next two are what a gateway does: TLS to the API server in a session, and on a data
		// connection.
		apart("native-tls-apart", func(b *testing.B) (*farEnd, tunneltest.BenchmarkDialer) { return openAtPort(b, false) }),
		apart("data-apart", func(b *testing.B) (*farEnd, tunneltest.BenchmarkDialer) { return openAtPort(b, true) }),
	}
}

// openAtPort has the agent at the gateway's port.
func openAtPort(b *testing.B, dataConnections bool) (*farEnd, tunneltest.BenchmarkDialer) {
	b.Helper()
	secured, client := tunneltest.BenchmarkTLS()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	info := tunnel.Info{Port: &tunnel.PortInfo{
		Address: listener.Addr().String(), ServerName: client.ServerName,
		CA: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secured.Certificates[0].Certificate[0]})),
	}}
	registry := tunneltest.NewRegistry(b, tunnel.Options{
		MaxStreamsPerSession: tunnelStreams, DataConnections: dataConnections, Info: func() tunnel.Info { return info },
	})
	port := &tunnel.Port{
		Registry: registry, TLS: secured,
		Path: func(string) (string, bool) { return tunnelMember, true },
		Authenticate: func(context.Context, string) (string, time.Time, bool, error) {
			return tunnelMember, time.Time{}, true, nil
		},
		IsAgentOf: func(context.Context, string, string) (bool, error) { return true, nil },
	}
	background(b, func(ctx context.Context) error { return port.Serve(ctx, listener) })
	far := startFarEnd(b, farEndAtPort+tunneltest.Serve(b, "127.0.0.1", func(c *net.TCPConn) {
		_ = registry.Serve(b.Context(), tunnelMember, tls.Server(native.Batch(c), secured))
	}))
	return far, func() (net.Conn, error) {
		conn, err := registry.DialMember(b.Context(), tunnelMember, tunnel.APIServer)
		if err != nil {
			return nil, err
		}
		return tls.Client(conn, client), nil
	}
}

// apart is a path with one CPU for this process and another for its far end.
func apart(name string, open func(b *testing.B) (*farEnd, tunneltest.BenchmarkDialer)) tunneltest.Path {
	var used func() time.Duration
	return tunneltest.Path{
		Name: name, Bulk: true,
		Open: func(b *testing.B) tunneltest.BenchmarkDialer {
			useCPU(b, os.Getpid(), strconv.Itoa(gatewayCPU))
			before := runtime.GOMAXPROCS(1)
			b.Cleanup(func() {
				runtime.GOMAXPROCS(before)
				useCPU(b, os.Getpid(), fmt.Sprintf("0-%d", runtime.NumCPU()-1))
			})
			far, dial := open(b)
			used = func() time.Duration { return cpuOf(b, far.pid) }
			return dial
		},
		// It is known once the path is open.
		CPU: func() time.Duration { return used() },
	}
}

// useCPU pins all threads of a process, and later ones, to some CPUs.
func useCPU(b *testing.B, pid int, cpus string) {
	b.Helper()
	if out, err := exec.Command("taskset", "--all-tasks", "--cpu-list", "--pid", cpus, strconv.Itoa(pid)).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
}

// farEnd is a process at the member's end of a path.
type farEnd struct {
	pid int
	// server is the address of the benchmarks' server in farEndTLS.
	server string
}

// startFarEnd starts one that ends with the benchmark.
func startFarEnd(b *testing.B, gateway string) *farEnd {
	b.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), farEndVariable+"="+gateway, "GOMAXPROCS=1")
	command.Stderr = os.Stderr
	life, lifeErr := command.StdinPipe()
	out, outErr := command.StdoutPipe()
	if err := errors.Join(lifeErr, outErr, command.Start()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = life.Close()
		if err := command.Wait(); err != nil {
			b.Errorf("the far end: %v", err)
		}
	})
	useCPU(b, command.Process.Pid, strconv.Itoa(memberCPU))
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatalf("reading where the far end serves: %v", err)
	}
	return &farEnd{pid: command.Process.Pid, server: strings.TrimSpace(line)}
}

// serveFarEnd prints the address of the benchmarks' server, and runs until life is closed.
func serveFarEnd(gateway string, life io.Reader, out io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	secured, client := tunneltest.BenchmarkTLS()
	gateway, atPort := strings.CutPrefix(gateway, farEndAtPort)
	if gateway == farEndTLS || atPort {
		listener = tls.NewListener(listener, secured)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // The listener was closed.
			}
			go func() {
				defer conn.Close()
				tunneltest.ServeBenchmark(conn)
			}()
		}
	}()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if gateway != farEndTLS {
		moved, once := make(chan struct{}), sync.Once{}
		atPortOf := func(port tunnel.PortInfo, token string) *tunnel.HubDialer {
			return &tunnel.HubDialer{URL: "https://" + port.Address, TLS: client, Token: func(context.Context) (string, error) { return token, nil }}
		}
		agent := &tunnel.Connector{
			Member: tunnelMember, MaxStreams: tunnelStreams,
			Targets: map[string]tunnel.Target{tunnel.APIServer: tunnel.TCP(listener.Addr().String())},
			Dial: func(ctx context.Context) (net.Conn, error) {
				raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", gateway)
				if err != nil {
					return nil, err
				}
				return tls.Client(native.Batch(raw), client), nil
			},
			Direct: func(ctx context.Context, port tunnel.PortInfo) (net.Conn, error) {
				return atPortOf(port, "token").Dial(ctx)
			},
			Data: func(ctx context.Context, port tunnel.PortInfo, nonce string) (*net.TCPConn, error) {
				return atPortOf(port, nonce).DialData(ctx)
			},
			OnStateChange: func(s tunnel.State) {
				if s.Path == tunnel.ViaPort {
					once.Do(func() { close(moved) })
				}
			},
		}
		go func() { _ = agent.Run(ctx) }()
		if atPort {
			<-moved
		}
	}
	if _, err := fmt.Fprintln(out, listener.Addr()); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, life)
	return err
}
