// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunneltest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// What a client requests from the benchmarks' server with its first byte.
const (
	askDownload = 'd' // send without end
	askUpload   = 'u' // read without end
	askEcho     = 'e' // send back what comes
)

const (
	bulkBlock     = 256 << 10
	roundTripSize = 128
	// benchmarkHost is the name of the benchmarks' TLS servers.
	benchmarkHost = "benchmark.example"
)

// ServeBenchmark is the server behind every path.
func ServeBenchmark(c net.Conn) {
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

// Path leads to the benchmarks' server.
type Path struct {
	Name string
	// Open prepares the path and returns a dialer for it.
	Open func(b *testing.B) BenchmarkDialer
	// CPU is the CPU time that other processes used for it; nil if there are none.
	CPU func() time.Duration
	// Most limits the connections of the path; 0 is no limit.
	Most int
	// MostBusy is the same for connections whose data nobody reads. The kernel buffers megabytes
	// for each, and when it buffers about 2 GiB in total it slows every connection.
	MostBusy int
	// Bulk measures only throughput: this process sees only its own ends of connections, so their
	// memory cannot be measured.
	Bulk bool
}

// BenchmarkDialer opens one connection to the benchmarks' server.
type BenchmarkDialer func() (net.Conn, error)

// DirectTCP is the path without anything in between.
func DirectTCP() Path {
	return Path{Name: "direct", Open: func(b *testing.B) BenchmarkDialer {
		address := Serve(b, loopback, func(c *net.TCPConn) { ServeBenchmark(c) })
		return func() (net.Conn, error) { return net.Dial("tcp", address) }
	}}
}

// DirectTLS is the baseline: TLS directly to the server.
func DirectTLS() Path {
	return Path{Name: "direct-tls", Open: func(b *testing.B) BenchmarkDialer {
		server, client := BenchmarkTLS()
		address := Serve(b, loopback, func(c *net.TCPConn) {
			secured := tls.Server(c, server)
			defer secured.Close()
			ServeBenchmark(secured)
		})
		return func() (net.Conn, error) { return tls.Dial("tcp", address, client) }
	}}
}

// BenchmarkTLS returns a certificate for the benchmarks' TLS servers, and the pool that trusts it.
// Its key is of the same type as a gateway's, and the same in all processes, so that both ends may
// be in different ones.
func BenchmarkTLS() (server, client *tls.Config) {
	certificate, authority, err := benchmarkCertificate()
	if err != nil {
		panic(err) // The key is public; nothing depends on its secrecy.
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority)
	return &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13},
		&tls.Config{RootCAs: roots, ServerName: benchmarkHost, MinVersion: tls.VersionTLS13}
}

// benchmarkCertificate returns a certificate and its CA, which have the same key. The certificates of two
// processes differ in their signatures. A process verifies that of another one by its own CA. It would
// not do so if the certificate were self-signed: a chain has no two certificates of one name and key.
func benchmarkCertificate() (tls.Certificate, *x509.Certificate, error) {
	const size = 32 // of a private key of P-256, in bytes
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), bytes.Repeat([]byte{1}, size))
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of " + benchmarkHost},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	authority, _, err := signed(template, template, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	server := *template
	server.IsCA, server.Subject, server.DNSNames = false, pkix.Name{CommonName: benchmarkHost}, []string{benchmarkHost}
	leaf, der, err := signed(&server, authority, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, authority, err
}

func signed(template, parent *x509.Certificate, key *ecdsa.PrivateKey) (*x509.Certificate, []byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, key)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return cert, der, err
}

// RunBenchmark measures every path, one after the other.
func RunBenchmark(b *testing.B, paths ...Path) {
	for _, path := range paths {
		b.Run(path.Name, func(b *testing.B) {
			m := measured{dial: path.Open(b), path: path}
			b.Run("download", func(b *testing.B) { m.bulk(b, askDownload, 1) })
			b.Run("upload", func(b *testing.B) { m.bulk(b, askUpload, 1) })
			b.Run("download8", func(b *testing.B) { m.bulk(b, askDownload, 8) })
			if path.Bulk {
				return
			}
			b.Run("roundtrip", func(b *testing.B) { m.roundTrip(b, 0) })
			b.Run("roundtrip-under-bulk", func(b *testing.B) { m.roundTrip(b, 2) })
			b.Run("dial", func(b *testing.B) { m.dials(b) })
			b.Run("idle10000", func(b *testing.B) { m.held(b, 10_000, false) })
			b.Run("busy1000", func(b *testing.B) { m.held(b, 1_000, true) })
		})
	}
}

// measured is a path that is open.
type measured struct {
	dial BenchmarkDialer
	path Path
}

// ask opens a connection and sends its purpose.
func (m measured) ask(b *testing.B, what byte) net.Conn {
	b.Helper()
	conn, err := m.dial()
	if err != nil {
		b.Fatal(err)
	}
	if _, err := conn.Write([]byte{what}); err != nil {
		b.Fatal(err)
	}
	return conn
}

// bulk moves blocks through that many connections at a time.
func (m measured) bulk(b *testing.B, what byte, connections int) {
	blocks := make(chan struct{})
	var moving sync.WaitGroup
	for range connections {
		conn := m.ask(b, what)
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
	began := m.cpuTime(b)
	for b.Loop() {
		blocks <- struct{}{}
	}
	close(blocks)
	moving.Wait()
	const gib = 1 << 30
	b.ReportMetric((m.cpuTime(b)-began).Seconds()*gib/(float64(b.N)*bulkBlock), "cpu-s/GiB")
}

// cpuTime is the CPU time of this process, which contains the ends, and of other processes.
func (m measured) cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	used := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	if m.path.CPU != nil {
		used += m.path.CPU()
	}
	return used
}

// roundTrip measures small messages next to that many downloads.
func (m measured) roundTrip(b *testing.B, bulk int) {
	var moving sync.WaitGroup
	defer moving.Wait()
	for range bulk {
		conn := m.ask(b, askDownload)
		defer conn.Close()
		moving.Go(func() { _, _ = io.CopyBuffer(io.Discard, struct{ io.Reader }{conn}, make([]byte, bulkBlock)) })
	}
	conn := m.ask(b, askEcho)
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

// dials measures connections that are ready to use: opened, and one round trip.
func (m measured) dials(b *testing.B) {
	answer := make([]byte, 1)
	for b.Loop() {
		conn := m.ask(b, askEcho)
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

// held measures the memory of that many open connections, including both ends and the server in
// this process, and the time to open them. Busy ones have each requested more than they are sent.
func (m measured) held(b *testing.B, connections int, busy bool) {
	connections = min(connections, affordable(b))
	most := m.path.Most
	if busy && m.path.MostBusy > 0 {
		most = m.path.MostBusy
	}
	if most > 0 {
		connections = min(connections, most)
	}
	for b.Loop() {
		goroutines, memory := runtime.NumGoroutine(), memoryUsed()
		conns := make([]net.Conn, connections)
		what := byte(askEcho)
		if busy {
			what = askDownload
		}
		for i := range conns {
			conns[i] = m.ask(b, what)
			if busy {
				_, _ = io.ReadFull(conns[i], make([]byte, 1))
			}
		}
		b.ReportMetric(float64(connections), "conns")
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

// affordable is the number of connections whose both ends fit this process's limit of file
// descriptors.
func affordable(b *testing.B) int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		b.Fatal(err)
	}
	const others, ends = 500, 2
	return (int(min(limit.Cur, 1<<20)) - others) / ends
}
