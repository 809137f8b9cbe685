// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/native"
	"fleetgate.io/fleetgate/pkg/tunnel/tunneltest"
)

// What a client asks of the benchmarks' server with its first byte.
const (
	askDownload = 'd' // send without end
	askUpload   = 'u' // read without end
	askEcho     = 'e' // send back what comes
)

const (
	bulkBlock     = 256 << 10
	roundTripSize = 128
)

// serveBench is the server behind every path.
func serveBench(c net.Conn) {
	ask := make([]byte, 1)
	if _, err := io.ReadFull(c, ask); err != nil {
		return
	}
	switch ask[0] {
	case askDownload:
		buffer := make([]byte, bulkBlock)
		for {
			if _, err := c.Write(buffer); err != nil {
				return
			}
		}
	case askUpload:
		buffer := make([]byte, bulkBlock)
		for {
			if _, err := c.Read(buffer); err != nil {
				return
			}
		}
	case askEcho:
		_, _ = io.CopyBuffer(struct{ io.Writer }{c}, struct{ io.Reader }{c}, make([]byte, 4<<10))
	}
}

type benchDialer func() (net.Conn, error)

// benchTLS is a certificate for the benchmarks' TLS servers, and who trusts it.
func benchTLS(b *testing.B) (server, client *tls.Config) {
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	defer s.Close()
	roots := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	return &tls.Config{Certificates: s.TLS.Certificates, MinVersion: tls.VersionTLS13},
		&tls.Config{RootCAs: roots, ServerName: "example.com", MinVersion: tls.VersionTLS13}
}

func dialTCP(b *testing.B) benchDialer {
	address := tunneltest.Serve(b, "127.0.0.1", func(c *net.TCPConn) { serveBench(c) })
	return func() (net.Conn, error) { return net.Dial("tcp", address) }
}

// dialTLS is the baseline: TLS straight to the server.
func dialTLS(b *testing.B) benchDialer {
	server, client := benchTLS(b)
	address := tunneltest.Serve(b, "127.0.0.1", func(c *net.TCPConn) {
		secured := tls.Server(c, server)
		defer secured.Close()
		serveBench(secured)
	})
	return func() (net.Conn, error) { return tls.Dial("tcp", address, client) }
}

// dialNative goes through an agent that dialed in by TLS and pipes to the server over
// plain TCP: this path and the baseline encrypt once.
func dialNative(b *testing.B) benchDialer {
	server, client := benchTLS(b)
	r := tunneltest.NewRegistry(b, tunnel.Options{MaxStreamsPerSession: 20_000})
	gateway := tunneltest.Serve(b, "127.0.0.1", func(c *net.TCPConn) {
		_ = r.Serve(b.Context(), "one", tls.Server(native.Batch(c), server))
	})
	return dialThrough(b, r, func(context.Context) (net.Conn, error) {
		raw, err := net.Dial("tcp", gateway)
		if err != nil {
			return nil, err
		}
		return tls.Client(native.Batch(raw), client), nil
	})
}

// dialUpgraded is native as the hub's API server would let it in, without a hub
// between: the gateway's end of TLS is net/http's.
func dialUpgraded(b *testing.B) benchDialer {
	r := tunneltest.NewRegistry(b, tunnel.Options{MaxStreamsPerSession: 20_000})
	server := httptest.NewUnstartedServer(r.UpgradeHandler("one"))
	server.StartTLS()
	b.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	hub := &tunnel.HubDialer{
		URL:   server.URL,
		TLS:   &tls.Config{RootCAs: roots, ServerName: "example.com"},
		Token: func(context.Context) (string, error) { return "", nil },
	}
	return dialThrough(b, r, hub.Dial)
}

// dialRelayed asks a gateway that holds no tunnel: another one, which it reaches by
// TLS, holds it on plain TCP, so that this path and the baseline encrypt once.
func dialRelayed(b *testing.B) benchDialer {
	ca := newAuthority(b)
	one, _ := startReplica(b, "gateway-1", ca)
	two, _ := startReplica(b, "gateway-2", ca)
	agents := tunneltest.Serve(b, "127.0.0.1", func(c *net.TCPConn) { _ = two.Serve(context.Background(), "one", c) })
	dialThrough(b, two.Registry, func(context.Context) (net.Conn, error) { return net.Dial("tcp", agents) })
	one.addresses <- []string{two.address}
	tunneltest.Eventually(b, "the member can be reached", func() bool { return one.Reachable("one") })
	return func() (net.Conn, error) { return one.DialMember(context.Background(), "one", tunnel.APIServer) }
}

func dialThrough(b *testing.B, r *tunnel.Registry, dial func(context.Context) (net.Conn, error)) benchDialer {
	target := tunnel.TCP(tunneltest.Serve(b, "127.0.0.1", func(c *net.TCPConn) { serveBench(c) }))
	connector := &tunnel.Connector{
		Member: "one", Dial: dial, MaxStreams: 20_000,
		Targets: map[string]tunnel.Target{tunnel.APIServer: target},
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- connector.Run(ctx) }()
	b.Cleanup(func() { cancel(); <-ended })
	tunneltest.Eventually(b, "the member is connected", func() bool { return r.Connected("one") })
	return func() (net.Conn, error) { return r.DialMember(ctx, "one", tunnel.APIServer) }
}

// BenchmarkTunnel compares tunnels with direct TCP and direct TLS on the same machine
// in the same run, all ends in this process.
func BenchmarkTunnel(b *testing.B) {
	for _, path := range []struct {
		name string
		dial func(*testing.B) benchDialer
	}{
		{"direct", dialTCP},
		{"direct-tls", dialTLS},
		{"native", dialNative},
		{"native-upgraded", dialUpgraded},
		{"native-relayed", dialRelayed},
	} {
		b.Run(path.name, func(b *testing.B) {
			dial := path.dial(b)
			b.Run("download", func(b *testing.B) { benchBulk(b, dial, askDownload, 1) })
			b.Run("upload", func(b *testing.B) { benchBulk(b, dial, askUpload, 1) })
			b.Run("download8", func(b *testing.B) { benchBulk(b, dial, askDownload, 8) })
			b.Run("roundtrip", func(b *testing.B) { benchRoundTrip(b, dial, 0) })
			b.Run("roundtrip-under-bulk", func(b *testing.B) { benchRoundTrip(b, dial, 2) })
			b.Run("dial", func(b *testing.B) { benchDial(b, dial) })
			b.Run("idle5000", func(b *testing.B) { benchHeld(b, dial, 5_000, false) })
			b.Run("busy1000", func(b *testing.B) { benchHeld(b, dial, 1_000, true) })
		})
	}
}

// ask opens a connection and says what it is for.
func ask(b *testing.B, dial benchDialer, what byte) net.Conn {
	b.Helper()
	conn, err := dial()
	if err != nil {
		b.Fatal(err)
	}
	if _, err := conn.Write([]byte{what}); err != nil {
		b.Fatal(err)
	}
	return conn
}

// benchBulk moves blocks through so many connections at a time.
func benchBulk(b *testing.B, dial benchDialer, what byte, connections int) {
	blocks := make(chan struct{})
	var moving sync.WaitGroup
	for range connections {
		conn := ask(b, dial, what)
		defer conn.Close()
		moving.Go(func() {
			buffer := make([]byte, bulkBlock)
			for range blocks {
				var err error
				if what == askDownload {
					_, err = io.ReadFull(conn, buffer)
				} else {
					_, err = conn.Write(buffer)
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	b.SetBytes(bulkBlock)
	began := cpuTime(b)
	for b.Loop() {
		blocks <- struct{}{}
	}
	close(blocks)
	moving.Wait()
	const gib = 1 << 30
	b.ReportMetric((cpuTime(b)-began).Seconds()*gib/(float64(b.N)*bulkBlock), "cpu-s/GiB")
}

// cpuTime is what this process has used, with all ends in it.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// benchRoundTrip measures small messages, beside so many downloads.
func benchRoundTrip(b *testing.B, dial benchDialer, bulk int) {
	var moving sync.WaitGroup
	defer moving.Wait()
	for range bulk {
		conn := ask(b, dial, askDownload)
		defer conn.Close()
		moving.Go(func() { _, _ = io.CopyBuffer(io.Discard, struct{ io.Reader }{conn}, make([]byte, bulkBlock)) })
	}
	conn := ask(b, dial, askEcho)
	defer conn.Close()
	buffer := make([]byte, roundTripSize)
	var each []time.Duration
	for b.Loop() {
		began := time.Now()
		if _, err := conn.Write(buffer); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(conn, buffer); err != nil {
			b.Fatal(err)
		}
		each = append(each, time.Since(began))
	}
	slices.Sort(each)
	b.ReportMetric(float64(each[len(each)/2]), "p50-ns")
	b.ReportMetric(float64(each[len(each)*99/100]), "p99-ns")
}

// benchDial counts connections that are ready to use: opened, and one round trip.
func benchDial(b *testing.B, dial benchDialer) {
	answer := make([]byte, 1)
	for b.Loop() {
		conn := ask(b, dial, askEcho)
		if _, err := conn.Write(answer); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(conn, answer); err != nil {
			b.Fatal(err)
		}
		_ = conn.Close()
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "dials/s")
}

// benchHeld says what so many open connections cost, both ends of all of them and
// the server's in this process, and how long they take to be made. Busy ones have
// each asked for more than they are given.
func benchHeld(b *testing.B, dial benchDialer, connections int, busy bool) {
	for b.Loop() {
		goroutines, memory := runtime.NumGoroutine(), memoryUsed()
		conns := make([]net.Conn, connections)
		what := byte(askEcho)
		if busy {
			what = askDownload
		}
		for i := range conns {
			conns[i] = ask(b, dial, what)
			if busy {
				_, _ = io.ReadFull(conns[i], make([]byte, 1))
			}
		}
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/float64(connections), "goroutines/conn")
		b.ReportMetric(float64(int64(memoryUsed()-memory))/float64(connections), "B/conn")
		for _, conn := range conns {
			_ = conn.Close()
		}
	}
}

func memoryUsed() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapInuse + stats.StackInuse
}
