// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

// networks are the connections that every behaviour is tried on.
var networks = map[string]func(testing.TB) (net.Conn, net.Conn){
	"pipe": func(testing.TB) (net.Conn, net.Conn) { return net.Pipe() },
	"tcp":  tcpPair,
	"tls":  tlsPair,
}

func tcpPair(t testing.TB) (net.Conn, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialed, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return dialed, accepted
}

func tlsPair(t testing.TB) (net.Conn, net.Conn) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"hub"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots.AddCert(cert)
	a, b := tcpPair(t)
	client := tls.Client(a, &tls.Config{RootCAs: roots, ServerName: "hub"})
	server := tls.Server(b, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	go func() { _ = server.Handshake() }()
	if err := client.Handshake(); err != nil {
		t.Fatal(err)
	}
	return client, server
}

// sessions starts both ends of a session on a network.
func sessions(t testing.TB, network func(testing.TB) (net.Conn, net.Conn)) (gateway, agent *Carrier) {
	t.Helper()
	a, b := network(t)
	gateway, err := New(a, Gateway, Options{})
	if err != nil {
		t.Fatal(err)
	}
	agent, err = New(b, Agent, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = gateway.Close()
		_ = agent.Close()
	})
	return gateway, agent
}

// streams opens one stream and accepts it at the other end.
func streams(t testing.TB, opener, accepter *Carrier) (opened, accepted *Stream) {
	t.Helper()
	a, err := opener.Open(t.Context(), []byte("hi"))
	if err != nil {
		t.Fatalf("opening: %v", err)
	}
	b, err := accepter.Accept(t.Context())
	if err != nil {
		t.Fatalf("accepting: %v", err)
	}
	first := make([]byte, 2)
	if _, err := io.ReadFull(b, first); err != nil || string(first) != "hi" {
		t.Fatalf("first bytes %q: %v", first, err)
	}
	return a.(*Stream), b.(*Stream)
}

// everywhere runs a behaviour on each network, with each side as the opener.
func everywhere(t *testing.T, behaviour func(t *testing.T, opener, accepter *Carrier)) {
	for name, network := range networks {
		t.Run(name+"/gateway opens", func(t *testing.T) {
			gateway, agent := sessions(t, network)
			behaviour(t, gateway, agent)
		})
		t.Run(name+"/agent opens", func(t *testing.T) {
			gateway, agent := sessions(t, network)
			behaviour(t, agent, gateway)
		})
	}
}

func TestLargeTransfersArriveWholeInBothDirections(t *testing.T) {
	everywhere(t, func(t *testing.T, opener, accepter *Carrier) {
		a, b := streams(t, opener, accepter)
		var all sync.WaitGroup
		for _, way := range [][2]*Stream{{a, b}, {b, a}} {
			sum := make(chan [32]byte, 1)
			all.Go(func() {
				sum <- sendRandom(t, way[0], 16<<20)
			})
			all.Go(func() {
				h := sha256.New()
				n, err := io.Copy(h, way[1])
				if want := <-sum; err != nil || !bytes.Equal(h.Sum(nil), want[:]) {
					t.Errorf("received %d bytes, %v; the checksum differs", n, err)
				}
			})
		}
		all.Wait()
	})
}

// sendRandom writes size bytes in pieces of many lengths and closes that half.
func sendRandom(t *testing.T, w *Stream, size int) [32]byte {
	source := mathrand.NewChaCha8([32]byte{1})
	r := mathrand.New(source)
	h := sha256.New()
	for size > 0 {
		piece := make([]byte, min(size, 1+r.IntN(300<<10)))
		_, _ = source.Read(piece)
		if _, err := w.Write(piece); err != nil {
			t.Errorf("writing: %v", err)
			break
		}
		h.Write(piece)
		size -= len(piece)
	}
	if err := w.CloseWrite(); err != nil {
		t.Errorf("closing the write half: %v", err)
	}
	return [32]byte(h.Sum(nil))
}

func TestHalfCloseEndsOneDirectionOnly(t *testing.T) {
	everywhere(t, func(t *testing.T, opener, accepter *Carrier) {
		a, b := streams(t, opener, accepter)
		if err := a.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(b); err != nil || len(got) != 0 {
			t.Fatalf("the peer read %q, %v; want the end", got, err)
		}
		if _, err := a.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("writing after CloseWrite: %v, want net.ErrClosed", err)
		}
		if _, err := b.Write([]byte("answer")); err != nil {
			t.Fatalf("the other direction: %v", err)
		}
		_ = b.Close()
		if got, err := io.ReadAll(a); err != nil || string(got) != "answer" {
			t.Errorf("read %q, %v; want the answer and its end", got, err)
		}
	})
}

func TestWhatWasWrittenBeforeCloseArrives(t *testing.T) {
	everywhere(t, func(t *testing.T, opener, accepter *Carrier) {
		a, b := streams(t, opener, accepter)
		sent := bytes.Repeat([]byte("0123456789"), 10_000)
		if _, err := a.Write(sent); err != nil {
			t.Fatal(err)
		}
		_ = a.Close()
		if got, err := io.ReadAll(b); err != nil || !bytes.Equal(got, sent) {
			t.Errorf("read %d of %d bytes, %v", len(got), len(sent), err)
		}
		_ = b.Close()
		eventuallyNoStreams(t, opener, accepter)
	})
}

func TestResetIsNotAnEnd(t *testing.T) {
	everywhere(t, func(t *testing.T, opener, accepter *Carrier) {
		a, b := streams(t, opener, accepter)
		if _, err := a.Write([]byte("half an ans")); err != nil {
			t.Fatal(err)
		}
		_ = a.Reset()
		_, err := io.ReadAll(b)
		if !errors.Is(err, ErrReset) || !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("reading: %v, want ErrReset", err)
		}
		if _, err := b.Write([]byte("x")); !errors.Is(err, ErrReset) {
			t.Errorf("writing: %v, want ErrReset", err)
		}
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("reading on the side that left: %v, want net.ErrClosed", err)
		}
		_ = b.Close()
		eventuallyNoStreams(t, opener, accepter)
	})
}

func TestWriterLearnsThatItsReaderIsGone(t *testing.T) {
	everywhere(t, func(t *testing.T, opener, accepter *Carrier) {
		a, b := streams(t, opener, accepter)
		_ = a.Close()
		_, err := io.Copy(b, endless{})
		if !errors.Is(err, ErrReset) {
			t.Errorf("writing without end to a closed stream: %v, want ErrReset", err)
		}
		_ = b.Close()
		eventuallyNoStreams(t, opener, accepter)
	})
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestCloseWakesReaderAndWriter(t *testing.T) {
	everywhere(t, func(t *testing.T, opener, accepter *Carrier) {
		a, _ := streams(t, opener, accepter)
		ended := make(chan error, 2)
		go func() { _, err := a.Read(make([]byte, 1)); ended <- err }()
		go func() { _, err := io.Copy(a, endless{}); ended <- err }()
		runtime.Gosched()
		_ = a.Close()
		_ = a.Close()
		for range 2 {
			if err := <-ended; !errors.Is(err, net.ErrClosed) {
				t.Errorf("ended with %v, want net.ErrClosed", err)
			}
		}
		if err := a.SetDeadline(time.Now()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("setting a deadline: %v, want net.ErrClosed", err)
		}
	})
}

func TestDeadlinesWakeAndCanBeMoved(t *testing.T) {
	everywhere(t, func(t *testing.T, opener, accepter *Carrier) {
		a, b := streams(t, opener, accepter)
		go func() { _ = a.SetReadDeadline(time.Unix(1, 0)) }()
		_, err := a.Read(make([]byte, 1))
		var timeout net.Error
		if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("read ended with %v, want os.ErrDeadlineExceeded", err)
		}
		go func() { _ = a.SetWriteDeadline(time.Unix(1, 0)) }()
		if _, err := io.Copy(a, endless{}); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("write ended with %v, want os.ErrDeadlineExceeded", err)
		}
		if err := a.SetDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		mustWrite(t, b, []byte("still works"))
		if _, err := io.ReadFull(a, make([]byte, 11)); err != nil {
			t.Errorf("after the deadline was lifted: %v", err)
		}
	})
}

func TestABrokenSessionIsNotAnEnd(t *testing.T) {
	everywhere(t, func(t *testing.T, opener, accepter *Carrier) {
		a, b := streams(t, opener, accepter)
		mustWrite(t, b, []byte("half an ans"))
		if _, err := io.ReadFull(a, make([]byte, 11)); err != nil {
			t.Fatal(err)
		}
		_ = accepter.wire.Conn.Close()
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, ErrSessionClosed) {
			t.Errorf("read ended with %v, want ErrSessionClosed", err)
		}
		if _, err := a.Write([]byte("x")); !errors.Is(err, ErrSessionClosed) {
			t.Errorf("write ended with %v, want ErrSessionClosed", err)
		}
		<-opener.Done()
		if err := opener.Err(); !errors.Is(err, ErrSessionClosed) {
			t.Errorf("the session's reason is %v", err)
		}
		if _, err := opener.Open(t.Context(), nil); !errors.Is(err, ErrSessionClosed) {
			t.Errorf("opening: %v, want ErrSessionClosed", err)
		}
		if _, err := opener.Accept(t.Context()); !errors.Is(err, ErrSessionClosed) {
			t.Errorf("accepting: %v, want ErrSessionClosed", err)
		}
	})
}

func TestAStalledReaderStallsItsStreamOnly(t *testing.T) {
	everywhere(t, func(t *testing.T, opener, accepter *Carrier) {
		stalled, _ := streams(t, opener, accepter)
		filled := make(chan struct{})
		go func() {
			defer close(filled)
			_, _ = io.Copy(stalled, endless{})
		}()
		a, b := streams(t, opener, accepter)
		go func() { _, _ = io.Copy(b, b) }()
		for i := range 2000 {
			sent := fmt.Appendf(nil, "%08d%01000d", i, i)
			mustWrite(t, a, sent)
			got := make([]byte, len(sent))
			if _, err := io.ReadFull(a, got); err != nil || !bytes.Equal(got, sent) {
				t.Fatalf("message %d: %v", i, err)
			}
		}
		_ = stalled.Close()
		<-filled
	})
}

func TestOpenGivesUpWithItsContext(t *testing.T) {
	// Nobody reads at the other end: nothing can be written.
	a, b := net.Pipe()
	defer b.Close()
	c, err := New(a, Gateway, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	if _, err := c.Open(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("opening ended with %v, want context.Canceled", err)
	}
}

func TestOpenIsBoundedAndRecovers(t *testing.T) {
	a, b := net.Pipe()
	c, err := New(a, Gateway, Options{MaxStreams: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	agent, err := New(b, Agent, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	for range 3 {
		first, other := streams(t, c, agent)
		second, another := streams(t, c, agent)
		if _, err := c.Open(t.Context(), nil); !errors.Is(err, ErrTooManyStreams) {
			t.Errorf("the third stream: %v, want ErrTooManyStreams", err)
		}
		for _, s := range []*Stream{first, other, second, another} {
			_ = s.Close()
		}
		eventuallyNoStreams(t, c, agent)
	}
}

func TestSessionEndsOnAPingFlood(t *testing.T) {
	a, b := net.Pipe()
	c, err := New(a, Gateway, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// The flooder never reads.
	go func() { _, _ = b.Write(bytes.Repeat(frameHeader(framePing, flagSYN, 0, 1), 10_000)) }()
	<-c.Done()
	if err := c.Err(); !errors.Is(err, errPingFlood) {
		t.Errorf("the session ended with %v", err)
	}
}

func TestSessionEndsOnGarbage(t *testing.T) {
	for name, input := range map[string][]byte{
		"text":                  []byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
		"unknown type":          frameHeader(9, 0, 1, 0),
		"more than the window":  frameHeader(frameData, flagSYN, 2, 1<<31),
		"the same stream twice": append(frameHeader(frameWindowUpdate, flagSYN, 2, 0), frameHeader(frameWindowUpdate, flagSYN, 2, 0)...),
	} {
		t.Run(name, func(t *testing.T) {
			a, b := net.Pipe()
			c, err := New(a, Gateway, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			go func() { _, _ = io.Copy(io.Discard, b) }()
			_, _ = b.Write(input)
			<-c.Done()
			if err := c.Err(); !errors.Is(err, ErrSessionClosed) {
				t.Errorf("the session ended with %v", err)
			}
			_ = b.Close()
		})
	}
}

func TestNothingIsLeftAfterClose(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, network := range networks {
		gateway, agent := sessions(t, network)
		for range 50 {
			a, b := streams(t, gateway, agent)
			go func() { _, _ = io.Copy(b, b); _ = b.Close() }()
			mustWrite(t, a, []byte("x"))
			_ = a.Close()
		}
		_ = gateway.Close()
		_ = gateway.Close()
		_ = agent.Close()
	}
	eventually(t, func() bool { return runtime.NumGoroutine() <= before }, "goroutines are left")
}

func eventuallyNoStreams(t *testing.T, carriers ...*Carrier) {
	t.Helper()
	for _, c := range carriers {
		eventually(t, func() bool { return c.session.NumStreams() == 0 }, "streams are left in the session")
	}
}

// eventually waits for what other goroutines are about to do.
func eventually(t *testing.T, done func() bool, complaint string) {
	t.Helper()
	for range 2000 {
		if done() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	stacks := make([]byte, 1<<20)
	t.Fatalf("%s:\n%s", complaint, stacks[:runtime.Stack(stacks, true)])
}
