// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestMultiplexer_EndsWhenPeerIsSilentFor25Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, remote := net.Pipe()
		defer remote.Close()
		c := New(local, Gateway, Options{})
		defer c.Close()
		go func() { _, _ = io.Copy(io.Discard, remote) }()
		// Any bytes keep it alive, however slowly they come.
		go func() {
			for range 3 {
				time.Sleep(20 * time.Second)
				_, _ = remote.Write(appendFrame(nil, kindReset, 7, nil))
			}
		}()
		began := time.Now()
		<-c.Done()
		if err := c.Err(); !errors.Is(err, ErrPeerSilent) {
			t.Fatalf("the session ended with %v, want ErrPeerSilent", err)
		}
		if got, want := time.Since(began), 85*time.Second; got != want {
			t.Errorf("given up after %v, want %v: 25 s after the last byte", got, want)
		}
	})
}

func TestMultiplexer_EndsWhenPeerReadsNothingFor25Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var talking sync.WaitGroup
		defer talking.Wait()
		local, remote := net.Pipe()
		defer remote.Close()
		c := New(local, Gateway, Options{})
		defer c.Close()
		// The peer sends but does not read.
		talking.Go(func() {
			for {
				time.Sleep(time.Second)
				if _, err := remote.Write(appendFrame(nil, kindReset, 7, nil)); err != nil {
					return
				}
			}
		})
		began := time.Now()
		<-c.Done()
		if err := c.Err(); !errors.Is(err, ErrPeerStalled) {
			t.Fatalf("the session ended with %v, want ErrPeerStalled", err)
		}
		if got := time.Since(began); got != 25*time.Second {
			t.Errorf("given up after %v, want 25 s", got)
		}
	})
}

func TestMultiplexer_BothSidesPingWithoutTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		gateway, agent := New(a, Gateway, Options{}), New(b, Agent, Options{})
		defer gateway.Close()
		defer agent.Close()
		time.Sleep(time.Hour)
		if gateway.Err() != nil || agent.Err() != nil {
			t.Errorf("after a quiet hour: %v, %v", gateway.Err(), agent.Err())
		}
	})
}

func TestStream_ClosedStreamWaitsForPeerOnlyForLingerTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		gateway, agent := New(a, Gateway, Options{}), New(b, Agent, Options{})
		defer gateway.Close()
		defer agent.Close()
		left, right := streams(t, gateway, agent)
		_ = left.Close()
		if _, err := right.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Fatalf("the peer read %v, want the end", err)
		}
		time.Sleep(lingerTime - time.Second)
		if _, err := right.Write(nil); err != nil {
			t.Errorf("before its time: %v", err)
		}
		time.Sleep(2 * time.Second)
		if _, err := right.Write([]byte("x")); !errors.Is(err, ErrReset) {
			t.Errorf("after its time: %v, want ErrReset", err)
		}
		if gateway.Streams() != 0 || agent.Streams() != 0 {
			t.Error("the stream is still held")
		}
	})
}

func mustWrite(t *testing.T, w io.Writer, p []byte) {
	t.Helper()
	if n, err := w.Write(p); n != len(p) || err != nil {
		t.Fatalf("wrote %d of %d bytes: %v", n, len(p), err)
	}
}
