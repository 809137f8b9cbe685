// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/budget"
	"fleetgate.io/fleetgate/pkg/tunnel/native"
)

// muxes are both ends of a session over a pipe.
func muxes(t *testing.T) (gateway, agent *native.Multiplexer, unread *budget.Budget) {
	a, b := net.Pipe()
	unread = budget.New(1 << 30)
	gateway, agent = native.New(a, native.Gateway, native.Options{}), native.New(b, native.Agent, native.Options{Budget: unread})
	t.Cleanup(func() {
		_ = gateway.Close()
		_ = agent.Close()
	})
	return gateway, agent, unread
}

func openStream(t *testing.T, opener, accepter *native.Multiplexer) (opened, accepted *native.Stream) {
	t.Helper()
	a, err := opener.Open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := accepter.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return a.(*native.Stream), b.(*native.Stream)
}

func TestDialTarget_AbandonsBlockedWriteAfterReset(t *testing.T) {
	for name, fail := range map[string]func(stream *native.Stream, session *native.Multiplexer){
		"reset":           func(s *native.Stream, _ *native.Multiplexer) { _ = s.Reset() },
		"end, then reset": func(s *native.Stream, _ *native.Multiplexer) { _ = s.CloseWrite(); _ = s.Reset() },
		"session ended":   func(_ *native.Stream, c *native.Multiplexer) { _ = c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gateway, agent, unread := muxes(t)
				user, stream := openStream(t, gateway, agent)
				near, far := net.Pipe() // Nobody reads from far.
				defer far.Close()
				ended := pipeTo(t, stream, near)
				if _, err := user.Write(make([]byte, 200<<10)); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if unread.Used() == 0 {
					t.Fatal("the target takes the data")
				}
				fail(user, gateway)
				expectEndWithinASecond(t, ended)
				if used := unread.Used(); used != 0 {
					t.Errorf("%d bytes still count as unread", used)
				}
			})
		})
	}
}

// A gateway that forwards a stream for another one pipes from stream to stream.
func TestDialTarget_AbandonsBlockedWriteAfterTargetsReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gateway, agent, _ := muxes(t)
		_, stream := openStream(t, gateway, agent) // Nobody reads it in the gateway.
		further, member, _ := muxes(t)
		forwarded, target := openStream(t, further, member)
		ended := pipeTo(t, stream, forwarded)
		go func() { _, _ = io.Copy(target, endless{}) }()
		synctest.Wait() // All windows are full.
		_ = target.Reset()
		expectEndWithinASecond(t, ended)
	})
}

// pipeTo pipes a stream to a target until ended is closed.
func pipeTo(t *testing.T, stream, target net.Conn) (ended chan struct{}) {
	t.Helper()
	handle, err := tunnel.Dial(func(context.Context) (net.Conn, error) { return target, nil })(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		_ = handle(t.Context(), stream)
	}()
	return ended
}

// expectEndWithinASecond is for tests with a fake clock.
func expectEndWithinASecond(t *testing.T, ended chan struct{}) {
	t.Helper()
	time.Sleep(time.Second)
	synctest.Wait()
	select {
	case <-ended:
	default:
		t.Fatal("the stream still waits for the other side a second after the failure")
	}
}
