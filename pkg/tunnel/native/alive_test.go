// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// still is a connection that can be paused: nothing is read from it meanwhile.
type still struct {
	net.Conn
	mu sync.Mutex
}

func (s *still) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	return n, err
}

// standing are the two ends of a session, of which the agent's can be paused. Its kernel still
// accepts data, as for a stopped process.
func standing(t *testing.T) (gateway *Multiplexer, agent *still) {
	t.Helper()
	a, b := tcpPair(t)
	agent = &still{Conn: b}
	gateway, far := New(a, Gateway, Options{}), New(agent, Agent, Options{})
	t.Cleanup(func() { _, _ = gateway.Close(), far.Close() })
	return gateway, agent
}

func TestResponds_FalseForPausedPeerAndSessionContinues(t *testing.T) {
	gateway, agent := standing(t)
	if !gateway.Responds(t.Context()) || gateway.Unresponsive() {
		t.Fatal("a peer that answers is doubted")
	}
	agent.mu.Lock()
	var asking sync.WaitGroup
	for range 100 { // More than a peer would answer in a second, if each sent a probe of its own.
		asking.Go(func() {
			gateway.Responds(t.Context())
		})
	}
	asking.Wait()
	// On a very busy machine this side checks too late and trusts the peer, until the next probe.
	eventually(t, func() bool { return !gateway.Responds(t.Context()) }, "a peer that stands still is not doubted")
	if !gateway.Unresponsive() || gateway.Err() != nil {
		t.Fatalf("silent: %t, and the session has ended: %v", gateway.Unresponsive(), gateway.Err())
	}
	agent.mu.Unlock()
	eventually(t, func() bool { return !gateway.Unresponsive() }, "a peer that responds again still counts as silent")
	if !gateway.Responds(t.Context()) || gateway.Err() != nil {
		t.Errorf("the peer responds again but counts as silent, or the session has ended: %v", gateway.Err())
	}
}

// A peer may stop right after it has responded. The next probe should not have to wait for the end of this one.
func TestResponds_TrueSoonAfterResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		gateway, agent := New(a, Gateway, Options{}), New(b, Agent, Options{})
		defer gateway.Close()
		defer agent.Close()
		began := time.Now()
		if !gateway.Responds(t.Context()) {
			t.Error("a peer that responds counts as unresponsive")
		}
		if took := time.Since(began); took > probeCheck {
			t.Errorf("the probe took %v, want at most %v", took, probeCheck)
		}
	})
}

// deaf reads nothing and sends nothing.
func deaf(t *testing.T) *Multiplexer {
	t.Helper()
	local, remote := net.Pipe()
	t.Cleanup(func() { _ = remote.Close() })
	return New(local, Gateway, Options{})
}

func TestResponds_FalseAfterTimeoutAndThenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := deaf(t)
		defer c.Close()
		for _, want := range []time.Duration{responseTimeout, 0} {
			began := time.Now()
			if c.Responds(t.Context()) {
				t.Error("it is not doubted")
			}
			if took := time.Since(began); took != want {
				t.Errorf("it was doubted after %v, want %v", took, want)
			}
		}
	})
}

func TestResponds_TrueWhenUncertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, asks := range map[string]func(*Multiplexer) bool{
			"who asks has gone": func(c *Multiplexer) bool {
				ctx, cancel := context.WithTimeout(t.Context(), responseTimeout/2)
				defer cancel()
				return c.Responds(ctx)
			},
			"much is on its way": func(c *Multiplexer) bool {
				c.wire.sent.Add(probeBacklog + 1)
				return c.Responds(t.Context())
			},
			"the way is long": func(c *Multiplexer) bool {
				c.shortestTrip.Store(int64(responseTimeout))
				ctx, cancel := context.WithTimeout(t.Context(), tripsWithin*responseTimeout-1)
				defer cancel()
				return c.Responds(ctx)
			},
		} {
			c := deaf(t)
			if !asks(c) {
				t.Errorf("%s: it is doubted", name)
			}
			_ = c.Close()
		}
	})
}

func TestResponds_EndsWithTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := deaf(t)
		time.AfterFunc(time.Millisecond, func() { _ = c.Close() })
		began := time.Now()
		c.Responds(t.Context())
		if took := time.Since(began); took != time.Millisecond {
			t.Errorf("who asked waited %v for a session that ended after 1 ms", took)
		}
		if !errors.Is(c.Err(), ErrSessionClosed) {
			t.Errorf("it ended with %v", c.Err())
		}
	})
}
