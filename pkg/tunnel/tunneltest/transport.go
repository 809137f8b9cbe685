// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunneltest

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Transport carries connections from a gateway to targets of a member.
type Transport struct {
	// Connect starts both ends for the duration of the test, with the connection between them
	// through a link that it creates with NewLink. The member allows targets, each a host:port.
	// dial opens a connection to one of them.
	Connect func(t *testing.T, targets ...string) (dial Dial, link *Link)
	// NoHalfClose: the protocol can only end both directions together.
	NoHalfClose bool
	// NoReset: the protocol cannot distinguish a reset from an end.
	NoReset bool
	// Large is the size of the large transfer; 0 is 64 MiB, or 1 GiB if FLEETGATE_MATRIX is set.
	Large int
	// Many is how many connections are opened to check that they leak nothing; 0 is 10,000.
	Many int
}

// Dial opens a connection through a tunnel.
type Dial func(ctx context.Context, address string) (net.Conn, error)

// RunTransport tests that a transport behaves like the TCP connection that it replaces.
func RunTransport(t *testing.T, transport Transport) {
	if transport.Large == 0 {
		transport.Large = 64 << 20
		if os.Getenv("FLEETGATE_MATRIX") != "" {
			transport.Large = 1 << 30
		}
	}
	if transport.Many == 0 {
		transport.Many = 10_000
	}
	for name, check := range map[string]func(*testing.T, Transport){
		"bytes arrive as they were sent, both ways":   bytesArrive,
		"one byte at a time":                          oneByteAtATime,
		"a large transfer":                            largeTransfer,
		"the target's end is an end":                  targetEnds,
		"half close passes through":                   halfClose,
		"a reset of the target is not an end":         targetResets,
		"the target hears that the user has gone":     userLeaves,
		"deadlines wake, and can be moved":            deadlines,
		"a slow reader holds up nobody else":          slowReader,
		"a slow target holds up nobody else":          slowTarget,
		"a killed peer fails every connection":        peerKilled,
		"a network that is cut and healed":            cutAndHealed,
		"a target by an IPv6 literal":                 ipv6,
		"a target that cannot be reached is an error": unreachable,
		"a dial that is cancelled":                    cancelled,
		"connections have addresses":                  addresses,
		"nothing is left of many connections":         nothingLeft,
		"Close wakes who reads and who writes":        closeWakes,
		"connections at the same time do not mix up":  sideBySide,
		"what was written before Close arrives":       lastWords,
	} {
		t.Run(name, func(t *testing.T) { check(t, transport) })
	}
}

const loopback = "127.0.0.1"

// connect runs a server behind the transport and returns a function that dials it.
func connect(t *testing.T, tr Transport, serve func(*net.TCPConn)) (func() net.Conn, *Link) {
	t.Helper()
	address := Serve(t, loopback, serve)
	dial, link := tr.Connect(t, address)
	return func() net.Conn { return mustDial(t, dial, address) }, link
}

func mustDial(t *testing.T, dial Dial, address string) net.Conn {
	t.Helper()
	conn, err := dial(t.Context(), address)
	if err != nil {
		t.Fatalf("dialing %s: %v", address, err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// bytesArrive sends pieces of many sizes through an echo.
func bytesArrive(t *testing.T, tr Transport) {
	open, _ := connect(t, tr, Echo)
	echoed(t, open(), 16<<20, func(r *rand.Rand) int { return 1 + r.IntN(300<<10) })
}

func oneByteAtATime(t *testing.T, tr Transport) {
	open, _ := connect(t, tr, Echo)
	echoed(t, open(), 20_000, func(*rand.Rand) int { return 1 })
}

func largeTransfer(t *testing.T, tr Transport) {
	open, _ := connect(t, tr, Echo)
	echoed(t, open(), tr.Large, func(*rand.Rand) int { return 1 << 20 })
}

// echoed writes size random bytes in pieces, reads as many, and compares.
func echoed(t *testing.T, conn net.Conn, size int, piece func(*rand.Rand) int) {
	t.Helper()
	sent := make(chan [sha256.Size]byte, 1)
	go func() { sent <- sendRandom(t, conn, size, piece) }()
	h := sha256.New()
	n, err := io.CopyN(h, conn, int64(size))
	if err != nil {
		_ = conn.Close()
	}
	if want := <-sent; err != nil || [sha256.Size]byte(h.Sum(nil)) != want {
		t.Errorf("%d of %d bytes were echoed, %v; or they differ", n, size, err)
	}
}

func sendRandom(t *testing.T, w io.Writer, size int, piece func(*rand.Rand) int) [sha256.Size]byte {
	source := rand.NewChaCha8([32]byte{1})
	r := rand.New(rand.NewPCG(1, 2))
	h := sha256.New()
	for size > 0 {
		block := make([]byte, min(size, piece(r)))
		_, _ = source.Read(block)
		if _, err := w.Write(block); err != nil {
			t.Errorf("writing, %d bytes before the end: %v", size, err)
			break
		}
		h.Write(block)
		size -= len(block)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

func targetEnds(t *testing.T, tr Transport) {
	const size = 1 << 20
	open, _ := connect(t, tr, func(c *net.TCPConn) { _, _ = c.Write(make([]byte, size)) })
	if n, err := io.Copy(io.Discard, open()); n != size || err != nil {
		t.Errorf("read %d of %d bytes, then %v", n, size, err)
	}
}

func halfClose(t *testing.T, tr Transport) {
	if tr.NoHalfClose {
		t.Skip("the protocol has no half close")
	}
	open, _ := connect(t, tr, func(c *net.TCPConn) {
		// It answers only after the request's end.
		h := sha256.New()
		_, _ = io.Copy(h, c)
		_, _ = c.Write(h.Sum(nil))
	})
	conn := open()
	want := sendRandom(t, conn, 1<<20, func(*rand.Rand) int { return 64 << 10 })
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); err != nil || string(got) != string(want[:]) {
		t.Errorf("got %x, %v; want %x", got, err, want)
	}
	if _, err := conn.Write([]byte("x")); err == nil {
		t.Error("a write after CloseWrite succeeded")
	}
}

func targetResets(t *testing.T, tr Transport) {
	if tr.NoReset {
		t.Skip("the protocol cannot tell a reset from an end")
	}
	open, _ := connect(t, tr, func(c *net.TCPConn) {
		_, _ = io.WriteString(c, "half an ans")
		_, _ = io.ReadFull(c, make([]byte, 1))
		_ = c.SetLinger(0)
	})
	conn := open()
	if _, err := io.ReadFull(conn, make([]byte, 11)); err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Write([]byte("x"))
	if n, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read %d bytes, %v; want ECONNRESET", n, err)
	}
}

// userLeaves checks what the target's own connection sees.
func userLeaves(t *testing.T, tr Transport) {
	ended := make(chan error, 1)
	open, _ := connect(t, tr, func(c *net.TCPConn) {
		_, err := io.Copy(struct{ io.Writer }{c}, endless{})
		ended <- err
	})
	conn := open()
	if _, err := io.ReadFull(conn, make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if err := <-ended; !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("the target's writes ended with %v, want a reset", err)
	}
}

func peerKilled(t *testing.T, tr Transport) {
	open, link := connect(t, tr, Echo)
	conns := []net.Conn{open(), open(), open()}
	for _, conn := range conns {
		echoed(t, conn, 1000, func(*rand.Rand) int { return 100 })
	}
	link.Kill()
	for i, conn := range conns {
		if n, err := conn.Read(make([]byte, 1)); err == nil || !tr.NoReset && errors.Is(err, io.EOF) {
			t.Errorf("connection %d: read %d bytes, %v; want the failure", i, n, err)
		}
	}
}

func cutAndHealed(t *testing.T, tr Transport) {
	open, link := connect(t, tr, Echo)
	conn := open()
	echoed(t, conn, 1000, func(*rand.Rand) int { return 100 })
	link.Cut()
	const size = 1 << 20
	sent := make(chan [sha256.Size]byte, 1)
	go func() { sent <- sendRandom(t, conn, size, func(*rand.Rand) int { return 10_000 }) }()
	_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if n, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("over a cut network: read %d bytes, %v", n, err)
	}
	link.Heal()
	_ = conn.SetReadDeadline(time.Time{})
	h := sha256.New()
	n, err := io.CopyN(h, conn, size)
	if want := <-sent; err != nil || [sha256.Size]byte(h.Sum(nil)) != want {
		t.Errorf("after the network was healed: %d of %d bytes, %v; or they differ", n, size, err)
	}
}

func ipv6(t *testing.T, tr Transport) {
	address := Serve(t, "::1", Echo)
	dial, _ := tr.Connect(t, address)
	echoed(t, mustDial(t, dial, address), 100_000, func(*rand.Rand) int { return 10_000 })
}

func unreachable(t *testing.T, tr Transport) {
	// Port 1 of loopback: nobody listens there.
	const nobody = loopback + ":1"
	dial, _ := tr.Connect(t, nobody)
	conn, err := dial(t.Context(), nobody)
	if err == nil {
		_ = conn.Close()
		t.Error("the dial succeeded")
	}
}

func cancelled(t *testing.T, tr Transport) {
	address := Serve(t, loopback, Echo)
	dial, _ := tr.Connect(t, address)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := dial(ctx, address); !errors.Is(err, context.Canceled) {
		t.Errorf("the dial ended with %v, want context.Canceled", err)
	}
}

func addresses(t *testing.T, tr Transport) {
	open, _ := connect(t, tr, Echo)
	conn := open()
	for side, addr := range map[string]net.Addr{"local": conn.LocalAddr(), "remote": conn.RemoteAddr()} {
		if addr == nil || addr.Network() == "" || addr.String() == "" {
			t.Errorf("the %s address is %v", side, addr)
		}
	}
}

func nothingLeft(t *testing.T, tr Transport) {
	address := Serve(t, loopback, Echo)
	dial, _ := tr.Connect(t, address)
	_ = mustDial(t, dial, address).Close()
	settle()
	before := runtime.NumGoroutine()
	const workers = 16
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			for i := worker; i < tr.Many; i += workers {
				if err := useOnce(t.Context(), dial, address, i); err != nil {
					t.Errorf("connection %d: %v", i, err)
					return
				}
			}
		})
	}
	all.Wait()
	Eventually(t, "the goroutines of closed connections end", func() bool { return runtime.NumGoroutine() <= before })
}

// settle waits for goroutines that are about to end.
func settle() {
	for last := -1; last != runtime.NumGoroutine(); {
		last = runtime.NumGoroutine()
		time.Sleep(20 * time.Millisecond)
	}
}

// useOnce leaves connections in different states.
func useOnce(ctx context.Context, dial Dial, address string, i int) error {
	conn, err := dial(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("hello")); err != nil {
		return err
	}
	if i%3 == 0 {
		return nil // the response stays unread
	}
	_, err = io.ReadFull(conn, make([]byte, 5))
	return err
}

// Eventually waits for other goroutines, and dumps them if the condition never becomes true.
func Eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	const attempts, pause = 2000, 5 * time.Millisecond
	for range attempts {
		if done() {
			return
		}
		time.Sleep(pause)
	}
	stacks := make([]byte, 1<<20)
	t.Fatalf("it never came true that %s:\n%s", what, stacks[:runtime.Stack(stacks, true)])
}
