// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	konnectivityclient "sigs.k8s.io/apiserver-network-proxy/konnectivity-client/pkg/client"
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

func serveBench(c net.Conn) {
	ask := make([]byte, 1)
	if _, err := io.ReadFull(c, ask); err != nil {
		return
	}
	buffer := make([]byte, bulkBlock)
	switch ask[0] {
	case askDownload:
		for {
			if _, err := c.Write(buffer); err != nil {
				return
			}
		}
	case askUpload:
		for {
			if _, err := c.Read(buffer); err != nil {
				return
			}
		}
	case askEcho:
		_, _ = io.CopyBuffer(struct{ io.Writer }{c}, struct{ io.Reader }{c}, buffer)
	}
}

type dialFunc func() (net.Conn, error)

func benchDirect(b *testing.B) dialFunc {
	server := startTCP(b, "tcp", "127.0.0.1:0", func(c *net.TCPConn) { serveBench(c) })
	return func() (net.Conn, error) { return net.Dial("tcp", server) }
}

func benchDirectTLS(b *testing.B) dialFunc {
	ca := newAuthority(b, "direct")
	config := &tls.Config{Certificates: []tls.Certificate{ca.issue(b, "server")}}
	server := startTCP(b, "tcp", "127.0.0.1:0", func(c *net.TCPConn) { serveBench(tls.Server(c, config)) })
	client := &tls.Config{RootCAs: ca.pool(), ServerName: "localhost"}
	return func() (net.Conn, error) { return tls.Dial("tcp", server, client) }
}

// benchAgent starts a gateway and our agent in front of the benchmarks' server.
func benchAgent(b *testing.B) *gateway {
	g := startGateway(b, gatewayOptions{})
	g.join(b, "m", toAPIServer(startTCP(b, "tcp", "127.0.0.1:0", func(c *net.TCPConn) { serveBench(c) })))
	return g
}

// benchGRPC is upstream's own client library, one HTTP/2 connection for all dials.
func benchGRPC(b *testing.B) dialFunc {
	g := benchAgent(b)
	reusable, err := konnectivityclient.CreateGRPCTunnel(context.Background(), "passthrough:///"+g.frontendPort, g.grpcOptions(b, "root")...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = reusable.Close() })
	return func() (net.Conn, error) { return reusable.DialContext(context.Background(), "tcp", "m:443") }
}

func benchConnect(b *testing.B) dialFunc {
	dial := benchAgent(b).connectDialer(b, "root", "m:443")
	return func() (net.Conn, error) { return dial(context.Background()) }
}

// benchGateway is what the gateway itself has of an agent that speaks Konnectivity.
func benchGateway(b *testing.B) dialFunc {
	g := benchAgent(b)
	return func() (net.Conn, error) { return g.agents.DialMember(context.Background(), "m", "apiserver") }
}

// BenchmarkTunnel compares Konnectivity's two frontends, and the gateway's own dials
// through a Konnectivity agent, with direct connections in the same run. All ends
// are in this process.
func BenchmarkTunnel(b *testing.B) {
	for _, path := range []struct {
		name string
		dial func(*testing.B) dialFunc
	}{
		{"direct", benchDirect}, {"direct-tls", benchDirectTLS},
		{"konnectivity", benchGateway}, {"konnectivity-grpc", benchGRPC}, {"konnectivity-connect", benchConnect},
	} {
		b.Run(path.name, func(b *testing.B) {
			dial := path.dial(b)
			b.Run("download", func(b *testing.B) { benchDownload(b, dial) })
			b.Run("upload", func(b *testing.B) { benchUpload(b, dial) })
			b.Run("download8", func(b *testing.B) { benchDownload8(b, dial) })
			b.Run("roundtrip", func(b *testing.B) { benchRoundTrip(b, dial) })
			b.Run("dial", func(b *testing.B) { benchDial(b, dial) })
			b.Run("roundtrip-under-bulk", func(b *testing.B) { benchRoundTripUnderBulk(b, dial) })
		})
	}
}

// ask opens a connection and says what it is for.
func ask(b *testing.B, dial dialFunc, what byte) net.Conn {
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

func benchDownload(b *testing.B, dial dialFunc) {
	conn := ask(b, dial, askDownload)
	defer conn.Close()
	buffer := make([]byte, bulkBlock)
	b.SetBytes(bulkBlock)
	defer reportCPU(b)()
	for b.Loop() {
		if _, err := io.ReadFull(conn, buffer); err != nil {
			b.Fatal(err)
		}
	}
}

func benchUpload(b *testing.B, dial dialFunc) {
	conn := ask(b, dial, askUpload)
	defer conn.Close()
	buffer := make([]byte, bulkBlock)
	b.SetBytes(bulkBlock)
	defer reportCPU(b)()
	for b.Loop() {
		if _, err := conn.Write(buffer); err != nil {
			b.Fatal(err)
		}
	}
}

// reportCPU counts the CPU time of this process, which is all ends, for each GiB: on
// a machine with other work it is steadier than the speed.
func reportCPU(b *testing.B) (report func()) {
	b.Helper()
	began := cpuTime(b)
	return func() {
		const gib = 1 << 30
		b.ReportMetric((cpuTime(b)-began).Seconds()*gib/(float64(b.N)*bulkBlock), "cpu-s/GiB")
	}
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// benchDownload8 counts the blocks of eight streams together.
func benchDownload8(b *testing.B, dial dialFunc) {
	const streams = 8
	blocks := make(chan struct{})
	var reading sync.WaitGroup
	var conns []net.Conn
	for range streams {
		conn := ask(b, dial, askDownload)
		conns = append(conns, conn)
		reading.Go(func() {
			buffer := make([]byte, bulkBlock)
			for {
				if _, err := io.ReadFull(conn, buffer); err != nil {
					return
				}
				if _, more := <-blocks; !more {
					return
				}
			}
		})
	}
	b.SetBytes(bulkBlock)
	for b.Loop() {
		blocks <- struct{}{}
	}
	close(blocks)
	for _, conn := range conns {
		_ = conn.Close()
	}
	reading.Wait()
}

func benchRoundTrip(b *testing.B, dial dialFunc) {
	conn := ask(b, dial, askEcho)
	defer conn.Close()
	buffer := make([]byte, roundTripSize)
	for b.Loop() {
		roundTrip(b, conn, buffer)
	}
}

func roundTrip(b *testing.B, conn net.Conn, buffer []byte) {
	if _, err := conn.Write(buffer); err != nil {
		b.Fatal(err)
	}
	if _, err := io.ReadFull(conn, buffer); err != nil {
		b.Fatal(err)
	}
}

// benchDial counts connections that are ready to use: opened, and one round trip.
func benchDial(b *testing.B, dial dialFunc) {
	buffer := make([]byte, 1)
	for b.Loop() {
		conn := ask(b, dial, askEcho)
		roundTrip(b, conn, buffer)
		_ = conn.Close()
	}
}

// benchRoundTripUnderBulk reports the median beside the mean, which a few late ones
// decide.
func benchRoundTripUnderBulk(b *testing.B, dial dialFunc) {
	const streams = 2
	var reading sync.WaitGroup
	var conns []net.Conn
	for range streams {
		conn := ask(b, dial, askDownload)
		conns = append(conns, conn)
		reading.Go(func() {
			_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{conn}, make([]byte, bulkBlock))
		})
	}
	conn := ask(b, dial, askEcho)
	defer conn.Close()
	buffer := make([]byte, roundTripSize)
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		roundTrip(b, conn, buffer)
		took = append(took, time.Since(began))
	}
	for _, c := range conns {
		_ = c.Close()
	}
	reading.Wait()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "median-ns/op")
}
