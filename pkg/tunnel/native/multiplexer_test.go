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
	"encoding/binary"
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

	"fleetgate.io/fleetgate/pkg/tunnel/budget"
)

// networks are the connections on which every behaviour is tested.
var networks = map[string]func(testing.TB) (net.Conn, net.Conn){
	"pipe": func(testing.TB) (net.Conn, net.Conn) { return net.Pipe() },
	"tcp":  tcpPair,
	"tls":  tlsPair,
	// The first writer does the handshake.
	"tls without a handshake": tlsUnshaken,
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
	client, server := tlsUnshaken(t)
	go func() { _ = server.(*tls.Conn).Handshake() }()
	if err := client.(*tls.Conn).Handshake(); err != nil {
		t.Fatal(err)
	}
	return client, server
}

func tlsUnshaken(t testing.TB) (net.Conn, net.Conn) {
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
	return tls.Client(Batch(a), &tls.Config{RootCAs: roots, ServerName: "hub"}),
		tls.Server(Batch(b), &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
}

// sessions starts both ends of a session on a network.
func sessions(t testing.TB, network func(testing.TB) (net.Conn, net.Conn)) (gateway, agent *Multiplexer) {
	t.Helper()
	a, b := network(t)
	gateway, agent = New(a, Gateway, Options{}), New(b, Agent, Options{})
	t.Cleanup(func() {
		_ = gateway.Close()
		_ = agent.Close()
	})
	return gateway, agent
}

// streams opens one stream and accepts it at the other end.
func streams(t testing.TB, opener, accepter *Multiplexer) (opened, accepted *Stream) {
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
func everywhere(t *testing.T, behaviour func(t *testing.T, opener, accepter *Multiplexer)) {
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

func TestStream_LargeTransfersAreCompleteInBothDirections(t *testing.T) {
	everywhere(t, func(t *testing.T, opener, accepter *Multiplexer) {
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

func TestStream_HalfCloseEndsOnlyOneDirection(t *testing.T) {
	everywhere(t, func(t *testing.T, opener, accepter *Multiplexer) {
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

func TestStream_DataBeforeCloseArrives(t *testing.T) {
	everywhere(t, func(t *testing.T, opener, accepter *Multiplexer) {
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

func TestStream_ResetIsNotAnEnd(t *testing.T) {
	everywhere(t, func(t *testing.T, opener, accepter *Multiplexer) {
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

func TestStream_WriterSeesThatReaderHasClosed(t *testing.T) {
	everywhere(t, func(t *testing.T, opener, accepter *Multiplexer) {
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

func TestStream_CloseWakesReaderAndWriter(t *testing.T) {
	everywhere(t, func(t *testing.T, opener, accepter *Multiplexer) {
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

func TestStream_DeadlinesWakeAndCanBeMoved(t *testing.T) {
	everywhere(t, func(t *testing.T, opener, accepter *Multiplexer) {
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

func TestStream_BrokenSessionIsNotAnEnd(t *testing.T) {
	everywhere(t, func(t *testing.T, opener, accepter *Multiplexer) {
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

func TestStream_StalledReaderStallsOnlyItsStream(t *testing.T) {
	everywhere(t, func(t *testing.T, opener, accepter *Multiplexer) {
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

func TestOpen_NeverWaits(t *testing.T) {
	// Nobody reads at the other end: nothing can be written.
	a, b := net.Pipe()
	defer b.Close()
	c := New(a, Gateway, Options{})
	defer c.Close()
	for range 100 {
		if _, err := c.Open(t.Context(), []byte("hello")); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Open(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v, want context.Canceled", err)
	}
	if _, err := c.Open(t.Context(), make([]byte, MaxInfo+1)); err == nil {
		t.Error("more first bytes than allowed were taken")
	}
}

func TestOpen_IsLimitedAndRecovers(t *testing.T) {
	a, b := net.Pipe()
	c, agent := New(a, Gateway, Options{MaxStreams: 2}), New(b, Agent, Options{})
	defer c.Close()
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

func TestAccept_IsLimited(t *testing.T) {
	a, b := net.Pipe()
	c, agent := New(a, Gateway, Options{}), New(b, Agent, Options{MaxStreams: 1})
	defer c.Close()
	defer agent.Close()
	first, _ := streams(t, c, agent)
	second, err := c.Open(t.Context(), []byte("hi"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Read(make([]byte, 1)); !errors.Is(err, ErrReset) {
		t.Errorf("the second stream: %v, want ErrReset", err)
	}
	_ = first.Close()
	_ = second.Close()
}

func TestDrain_FinishesStreamsAndRefusesNewOnes(t *testing.T) {
	everywhere(t, func(t *testing.T, opener, accepter *Multiplexer) {
		a, b := streams(t, opener, accepter)
		accepter.Drain()
		accepter.Drain()
		<-opener.Draining()
		if _, err := opener.Open(t.Context(), nil); !errors.Is(err, ErrDraining) {
			t.Errorf("opening: %v, want ErrDraining", err)
		}
		mustWrite(t, a, []byte("still"))
		if _, err := io.ReadFull(b, make([]byte, 5)); err != nil {
			t.Errorf("an open stream: %v", err)
		}
		if c, d := streams(t, accepter, opener); c == nil || d == nil {
			t.Error("the side that drains cannot open a stream")
		}
	})
}

func TestSendInfo_DeliversOnlyTheLatest(t *testing.T) {
	everywhere(t, func(t *testing.T, opener, accepter *Multiplexer) {
		opener.SendInfo([]byte("first"))
		if got := <-accepter.Infos(); string(got) != "first" {
			t.Errorf("got %q", got)
		}
		opener.SendInfo([]byte("second"))
		opener.SendInfo(bytes.Repeat([]byte("3"), MaxInfo))
		streams(t, opener, accepter)
		if got := <-accepter.Infos(); len(got) != MaxInfo {
			t.Errorf("got %d bytes, want the latest message", len(got))
		}
	})
}

func TestWriter_SmallFramesOvertakeWaitingOnes(t *testing.T) {
	everywhere(t, func(t *testing.T, opener, accepter *Multiplexer) {
		for range 4 {
			bulk, sink := streams(t, opener, accepter)
			go func() { _, _ = io.Copy(bulk, endless{}) }()
			go func() { _, _ = io.Copy(io.Discard, sink) }()
		}
		a, b := streams(t, opener, accepter)
		go func() { _, _ = io.Copy(b, b) }()
		for i := range 50 {
			sent := fmt.Appendf(nil, "%08d", i)
			mustWrite(t, a, sent)
			got := make([]byte, len(sent))
			if _, err := io.ReadFull(a, got); err != nil || !bytes.Equal(got, sent) {
				t.Fatalf("message %d: %v", i, err)
			}
		}
	})
}

func TestBudget_CountsAndReleasesUnreadBytes(t *testing.T) {
	a, b := net.Pipe()
	unread := budget.New(300 << 10)
	gateway, agent := New(a, Gateway, Options{}), New(b, Agent, Options{Budget: unread})
	defer gateway.Close()
	defer agent.Close()
	greedy, idle := streams(t, gateway, agent)
	other, read := streams(t, gateway, agent)
	third, alsoUnread := streams(t, gateway, agent)
	for _, s := range []*Stream{greedy, third} {
		_ = s.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = s.Write(make([]byte, firstWindow-2))
	}
	reset := 0
	for _, s := range []*Stream{idle, alsoUnread} {
		if _, err := io.ReadAll(io.LimitReader(s, firstWindow-2)); errors.Is(err, ErrOverBudget) {
			reset++
		}
	}
	if reset != 1 {
		t.Errorf("%d streams were reset, want the one for which no memory was left", reset)
	}
	mustWrite(t, other, []byte("fine"))
	if _, err := io.ReadFull(read, make([]byte, 4)); err != nil {
		t.Errorf("a stream that holds little: %v", err)
	}
	for _, s := range []*Stream{idle, alsoUnread, read} {
		_ = s.Close()
	}
	if got := unread.Used(); got != 0 {
		t.Errorf("%d bytes are still counted", got)
	}
}

func TestBudget_ReleasesStreamsThatWereNotAccepted(t *testing.T) {
	a, b := net.Pipe()
	unread := budget.New(1 << 20)
	gateway, agent := New(a, Gateway, Options{}), New(b, Agent, Options{Budget: unread})
	defer gateway.Close()
	for range 3 {
		if _, err := gateway.Open(t.Context(), make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	for unread.Used() != 3000 {
		runtime.Gosched()
	}
	_ = agent.Close()
	if got := unread.Used(); got != 0 {
		t.Errorf("%d bytes are still counted", got)
	}
}

func TestBudget_EmptyAfterManyStreams(t *testing.T) {
	a, b := tcpPair(t)
	unread := budget.New(1 << 30)
	gateway, agent := New(a, Gateway, Options{Budget: unread}), New(b, Agent, Options{Budget: unread})
	defer gateway.Close()
	defer agent.Close()
	go func() {
		for {
			s, err := agent.Accept(t.Context())
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(s, s); _ = s.Close() }()
		}
	}()
	var all sync.WaitGroup
	for worker := range 16 {
		all.Go(func() {
			for i := worker; i < 10_000; i += 16 {
				s, err := gateway.Open(t.Context(), []byte("hello"))
				if err != nil {
					t.Errorf("stream %d: %v", i, err)
					return
				}
				_, _ = s.Write(make([]byte, 100+i%5000))
				switch i % 4 {
				case 0:
					_ = s.(*Stream).Reset()
				case 1:
					_ = s.(*Stream).CloseWrite()
					_, _ = io.Copy(io.Discard, s)
				case 2:
					_, _ = io.ReadFull(s, make([]byte, 50))
				}
				_ = s.Close()
			}
		})
	}
	all.Wait()
	eventuallyNoStreams(t, gateway, agent)
	eventually(t, func() bool { return unread.Used() == 0 }, "unread bytes are still counted")
}

func TestMultiplexer_EndsOnPingFlood(t *testing.T) {
	a, b := net.Pipe()
	c := New(a, Gateway, Options{})
	defer c.Close()
	// The flooder never reads.
	ping := appendFrame(nil, kindPing, 0, make([]byte, pingSize))
	go func() { _, _ = b.Write(bytes.Repeat(ping, 10_000)) }()
	<-c.Done()
	if err := c.Err(); !errors.Is(err, errPingFlood) {
		t.Errorf("the session ended with %v", err)
	}
}

func TestMultiplexer_EndsWhenPeerReadsNoAnswers(t *testing.T) {
	a, b := net.Pipe()
	c := New(a, Gateway, Options{MaxStreams: 1})
	defer c.Close()
	// Each refused stream is answered by a reset, which this peer never reads.
	go func() {
		for id := uint32(2); ; {
			var frames []byte
			for range 10_000 {
				frames = appendFrame(frames, kindOpen, id, nil)
				id += 2
			}
			if _, err := b.Write(frames); err != nil {
				return
			}
		}
	}()
	<-c.Done()
	if err := c.Err(); !errors.Is(err, ErrPeerStalled) {
		t.Errorf("the session ended with %v", err)
	}
}

func TestMultiplexer_EndsOnProtocolViolation(t *testing.T) {
	var broken *protocolError
	for name, input := range map[string][]byte{
		"text":                       []byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
		"an unknown kind":            appendFrame(nil, 20, 0, nil),
		"a stream of this side":      appendFrame(nil, kindOpen, 1, nil),
		"the same stream twice":      append(appendFrame(nil, kindOpen, 2, nil), appendFrame(nil, kindOpen, 2, nil)...),
		"stream 0":                   appendFrame(nil, kindData, 0, []byte("x")),
		"a ping of a stream":         appendFrame(nil, kindPing, 2, make([]byte, pingSize)),
		"a short ping":               appendFrame(nil, kindPing, 0, make([]byte, pingSize-1)),
		"data without data":          appendFrame(nil, kindData, 2, nil),
		"an end with data":           appendFrame(nil, kindEnd, 2, []byte("x")),
		"a credit of nothing":        append(appendFrame(nil, kindOpen, 2, nil), appendFrame(nil, kindCredit, 2, make([]byte, 4))...),
		"a credit of 4 GiB":          append(appendFrame(nil, kindOpen, 2, nil), appendFrame(nil, kindCredit, 2, []byte{255, 255, 255, 255})...),
		"a message that is too long": appendFrame(nil, kindInfo, 0, make([]byte, MaxInfo+1)),
	} {
		t.Run(name, func(t *testing.T) {
			a, b := net.Pipe()
			defer b.Close()
			c := New(a, Gateway, Options{})
			defer c.Close()
			go func() { _, _ = io.Copy(io.Discard, b) }()
			_, _ = b.Write(input)
			<-c.Done()
			if err := c.Err(); !errors.Is(err, ErrSessionClosed) || !errors.As(err, &broken) {
				t.Errorf("the session ended with %v", err)
			}
		})
	}
}

func TestMultiplexer_ContinuesOnUnusualButValidFrames(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	c := New(a, Gateway, Options{})
	defer c.Close()
	go func() { _, _ = io.Copy(io.Discard, b) }()
	for name, input := range map[string][]byte{
		"a kind of a later version":  appendFrame(nil, firstOptional, 7, make([]byte, 5000)),
		"data of an unknown stream":  appendFrame(nil, kindData, 8, make([]byte, 5000)),
		"the end of an unknown one":  appendFrame(nil, kindEnd, 8, nil),
		"a reset of an unknown one":  appendFrame(nil, kindReset, 8, nil),
		"a credit of an unknown one": appendFrame(nil, kindCredit, 8, []byte{0, 0, 0, 1}),
		"an answer to no ping":       appendFrame(nil, kindPong, 0, make([]byte, pingSize)),
	} {
		if _, err := b.Write(input); err != nil || c.Err() != nil {
			t.Errorf("%s: %v, %v", name, err, c.Err())
		}
	}
}

func TestStream_PeerThatExceedsWindowIsReset(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	c := New(a, Gateway, Options{})
	defer c.Close()
	go func() { _, _ = io.Copy(io.Discard, b) }()
	mustWrite(t, b, appendFrame(nil, kindOpen, 2, nil))
	mustWrite(t, b, appendFrame(nil, kindOpen, 4, []byte("hi")))
	frame := appendFrame(nil, kindData, 2, make([]byte, maxPayload))
	for range firstWindow/maxPayload + 1 {
		mustWrite(t, b, frame)
	}
	flooded, err := c.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var broken *protocolError
	if _, err := io.Copy(io.Discard, flooded); !errors.As(err, &broken) {
		t.Errorf("the stream ended with %v", err)
	}
	other, err := c.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(other, make([]byte, 2)); err != nil {
		t.Errorf("another stream: %v", err)
	}
}

// FuzzReceive feeds a session what a hostile peer may send. Whether or not the session ends, it
// must stay within its memory limits and release everything.
func FuzzReceive(f *testing.F) {
	f.Add(appendFrame(nil, kindOpen, 2, []byte("hello")))
	f.Add(append(appendFrame(nil, kindOpen, 2, nil), appendFrame(nil, kindData, 2, bytes.Repeat([]byte("x"), 3000))...))
	f.Add(append(appendFrame(nil, kindOpen, 2, nil), appendFrame(nil, kindEnd, 2, nil)...))
	f.Add(append(appendFrame(nil, kindOpen, 2, nil), appendFrame(nil, kindReset, 2, nil)...))
	f.Add(appendFrame(nil, kindPing, 0, make([]byte, pingSize)))
	f.Add(appendFrame(nil, kindInfo, 0, []byte("{}")))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, input []byte) {
		a, b := net.Pipe()
		c := New(a, Gateway, Options{})
		drained := make(chan struct{})
		go func() { defer close(drained); _, _ = io.Copy(io.Discard, b) }()
		_, _ = b.Write(input)
		if held := c.Unread(); held > int64(len(input)) {
			t.Errorf("%d bytes are held of %d", held, len(input))
		}
		_ = b.Close()
		<-c.Done()
		for range len(c.accepts) {
			stream, err := c.Accept(t.Context())
			if err != nil {
				break
			}
			_, _ = io.Copy(io.Discard, stream)
			_ = stream.Close()
		}
		_ = c.Close()
		<-drained
	})
}

// FuzzParseFrame checks that an accepted header encodes to the same bytes, and is within its
// limits.
func FuzzParseFrame(f *testing.F) {
	f.Add(uint64(0))
	f.Add(binary.BigEndian.Uint64(appendFrame(nil, kindEnd, 1, nil)))
	f.Fuzz(func(t *testing.T, bits uint64) {
		var header, again [headerSize]byte
		binary.BigEndian.PutUint64(header[:], bits)
		parsed, err := parseFrame(header)
		if err != nil {
			return
		}
		if parsed.length < 0 || parsed.length > maxPayload {
			t.Fatalf("a length of %d was accepted", parsed.length)
		}
		parsed.put(again[:])
		if again != header {
			t.Errorf("%x was read, %x is written", header, again)
		}
	})
}

func TestClose_LeaksNothing(t *testing.T) {
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

func eventuallyNoStreams(t *testing.T, muxes ...*Multiplexer) {
	t.Helper()
	for _, c := range muxes {
		eventually(t, func() bool { return c.Streams() == 0 }, "streams are left in the session")
	}
}

// eventually waits for other goroutines.
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
