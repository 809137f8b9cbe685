// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunneltest

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"
)

func deadlines(t *testing.T, tr Transport) {
	address := Serve(t, loopback, func(c *net.TCPConn) { _, _ = io.ReadFull(c, make([]byte, 1<<30)) })
	echo := Serve(t, loopback, Echo)
	dial, _ := tr.Connect(t, address, echo)

	conn := mustDial(t, dial, echo)
	_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := conn.Read(make([]byte, 1))
	var timeout net.Error
	if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("the read ended with %v, want os.ErrDeadlineExceeded", err)
	}
	_ = conn.SetReadDeadline(time.Time{})
	go func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) }()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a waiting read was ended with %v, want os.ErrDeadlineExceeded", err)
	}
	_ = conn.SetDeadline(time.Time{})
	echoed(t, conn, 1000, func(*rand.Rand) int { return 100 })

	stuck := mustDial(t, dial, address)
	go func() { _ = stuck.SetWriteDeadline(time.Now().Add(time.Millisecond)) }()
	if _, err := io.Copy(struct{ io.Writer }{stuck}, endless{}); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the write ended with %v, want os.ErrDeadlineExceeded", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// slowReader leaves an endless response unread.
func slowReader(t *testing.T, tr Transport) {
	flood := Serve(t, loopback, func(c *net.TCPConn) { _, _ = io.Copy(struct{ io.Writer }{c}, endless{}) })
	echo := Serve(t, loopback, Echo)
	dial, _ := tr.Connect(t, flood, echo)
	slow := mustDial(t, dial, flood)
	other := mustDial(t, dial, echo)
	for range 50 {
		if _, err := slow.Read(make([]byte, 1)); err != nil {
			t.Fatalf("the slow reader: %v", err)
		}
		echoed(t, other, 200_000, func(*rand.Rand) int { return 32 << 10 })
	}
}

// slowTarget never reads.
func slowTarget(t *testing.T, tr Transport) {
	release := make(chan struct{})
	defer close(release)
	stuck := Serve(t, loopback, func(c *net.TCPConn) { <-release })
	echo := Serve(t, loopback, Echo)
	dial, _ := tr.Connect(t, stuck, echo)
	slow := mustDial(t, dial, stuck)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(struct{ io.Writer }{slow}, endless{})
	}()
	other := mustDial(t, dial, echo)
	for range 50 {
		echoed(t, other, 200_000, func(*rand.Rand) int { return 32 << 10 })
	}
	_ = slow.Close()
	<-ended
}

func closeWakes(t *testing.T, tr Transport) {
	release := make(chan struct{})
	defer close(release)
	open, _ := connect(t, tr, func(c *net.TCPConn) { <-release })
	conn := open()
	ended := make(chan error, 2)
	go func() { _, err := conn.Read(make([]byte, 1)); ended <- err }()
	go func() { _, err := io.Copy(struct{ io.Writer }{conn}, endless{}); ended <- err }()
	runtime.Gosched()
	_ = conn.Close()
	_ = conn.Close()
	for range 2 {
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("it ended with %v, want net.ErrClosed", err)
		}
	}
}

func sideBySide(t *testing.T, tr Transport) {
	open, _ := connect(t, tr, Echo)
	var all sync.WaitGroup
	for i := range 64 {
		conn := open()
		all.Go(func() {
			for round := range 20 {
				sent := fmt.Appendf(nil, "%04d %04d %0*d", i, round, 1+round*1000, i)
				got := make([]byte, len(sent))
				go func() { _, _ = conn.Write(sent) }()
				if _, err := io.ReadFull(conn, got); err != nil || string(got) != string(sent) {
					t.Errorf("connection %d, round %d: %v, or the bytes of another", i, round, err)
					return
				}
			}
		})
	}
	all.Wait()
}

func lastWords(t *testing.T, tr Transport) {
	got := make(chan int64, 1)
	open, _ := connect(t, tr, func(c *net.TCPConn) {
		n, _ := io.Copy(io.Discard, c)
		got <- n
	})
	conn := open()
	const size = 1 << 20
	if _, err := conn.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if n := <-got; n != size {
		t.Errorf("%d of %d bytes arrived", n, size)
	}
}
