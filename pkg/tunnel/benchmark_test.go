// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"fleetgate.io/fleetgate/pkg/tunnel"
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

// dialDirect is the baseline: TLS straight to the server.
func dialDirect(b *testing.B) func() (net.Conn, error) {
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	b.Cleanup(server.Close)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", server.TLS)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { defer conn.Close(); serveBench(conn) }()
		}
	}()
	roots := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	config := &tls.Config{RootCAs: roots, ServerName: "example.com"}
	return func() (net.Conn, error) { return tls.Dial("tcp", listener.Addr().String(), config) }
}

// dialTunnel goes through an agent that dialed in by TLS and pipes to the server
// over plain TCP: both paths encrypt once.
func dialTunnel(b *testing.B) func() (net.Conn, error) {
	r := tunneltest.NewRegistry(b, tunnel.Options{})
	server := httptest.NewUnstartedServer(r.UpgradeHandler("one"))
	server.StartTLS()
	b.Cleanup(server.Close)
	hub := &tunnel.HubDialer{
		URL:   server.URL,
		TLS:   &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com"},
		Token: func(context.Context) (string, error) { return "", nil },
	}
	up, ended := make(chan struct{}), make(chan error, 1)
	unsubscribe := r.Subscribe(func(string, bool) { close(up) })
	target := tunnel.TCP(startTCP(b, func(c *net.TCPConn) { serveBench(c) }))
	connector := &tunnel.Connector{Member: "one", Dial: hub.Dial, Targets: map[string]tunnel.Target{tunnel.APIServer: target}}
	ctx, cancel := context.WithCancel(b.Context())
	go func() { ended <- connector.Run(ctx) }()
	<-up
	unsubscribe()
	b.Cleanup(func() { cancel(); <-ended })
	return func() (net.Conn, error) { return r.DialMember(ctx, "one", tunnel.APIServer) }
}

// BenchmarkTunnel compares a tunnel with direct TLS on the same machine in the same
// run, all ends in this process.
func BenchmarkTunnel(b *testing.B) {
	for _, path := range []struct {
		name string
		dial func(*testing.B) func() (net.Conn, error)
	}{{"direct-tls", dialDirect}, {"native", dialTunnel}} {
		b.Run(path.name, func(b *testing.B) {
			dial := path.dial(b)
			b.Run("download", func(b *testing.B) { benchDownload(b, dial) })
			b.Run("upload", func(b *testing.B) { benchUpload(b, dial) })
			b.Run("roundtrip", func(b *testing.B) { benchRoundTrip(b, dial) })
			b.Run("dial", func(b *testing.B) { benchDial(b, dial) })
		})
	}
}

// ask opens a connection and says what it is for.
func ask(b *testing.B, dial func() (net.Conn, error), what byte) net.Conn {
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

func benchDownload(b *testing.B, dial func() (net.Conn, error)) {
	conn := ask(b, dial, askDownload)
	defer conn.Close()
	buffer := make([]byte, bulkBlock)
	b.SetBytes(bulkBlock)
	for b.Loop() {
		if _, err := io.ReadFull(conn, buffer); err != nil {
			b.Fatal(err)
		}
	}
}

func benchUpload(b *testing.B, dial func() (net.Conn, error)) {
	conn := ask(b, dial, askUpload)
	defer conn.Close()
	buffer := make([]byte, bulkBlock)
	b.SetBytes(bulkBlock)
	for b.Loop() {
		if _, err := conn.Write(buffer); err != nil {
			b.Fatal(err)
		}
	}
}

func benchRoundTrip(b *testing.B, dial func() (net.Conn, error)) {
	conn := ask(b, dial, askEcho)
	defer conn.Close()
	buffer := make([]byte, roundTripSize)
	for b.Loop() {
		if _, err := conn.Write(buffer); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(conn, buffer); err != nil {
			b.Fatal(err)
		}
	}
}

// benchDial counts connections that are ready to use: opened, and one round trip.
func benchDial(b *testing.B, dial func() (net.Conn, error)) {
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
}
