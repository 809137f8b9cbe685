// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/mem"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/budget"
)

// wire is a stream without gRPC: packets pass through their encoding and a channel.
type wire struct {
	//nolint:containedctx // It stands for a stream of gRPC, which has one.
	ctx     context.Context
	in, out chan []byte
}

func (w *wire) Context() context.Context { return w.ctx }

func (w *wire) SendMsg(m any) error {
	encoded, err := codec{}.Marshal(m)
	if err != nil {
		return err
	}
	defer encoded.Free()
	select {
	case w.out <- encoded.Materialize():
		return nil
	case <-w.ctx.Done():
		return io.EOF
	}
}

func (w *wire) RecvMsg(m any) error {
	select {
	case b := <-w.in:
		return codec{}.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, m)
	case <-w.ctx.Done():
		return io.EOF
	}
}

// pairOfLinks returns both ends of one connection between two of our own ends.
func pairOfLinks(t testing.TB) (gatewayEnd, agentEnd *conn) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	a, b := make(chan []byte), make(chan []byte)
	metrics, err := NewMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(&wire{ctx, a, b}, "m", agentInfo{id: "a", extended: true}, AgentServerOptions{MaxConnections: 10, Metrics: metrics}, budget.New(1<<30))
	e := &endpoint{multiplexer: newMultiplexer(&wire{ctx, b, a}, true, false, 0, budget.New(1<<30), &meter{})}
	gatewayEnd, agentEnd = newConn(s.multiplexer, 1, addr("gateway"), addr("m")), newConn(e.multiplexer, 1, addr("m"), addr("gateway"))
	s.add(gatewayEnd)
	e.add(agentEnd)
	stop := make(chan struct{})
	ended := make(chan struct{}, 2)
	go func() { _ = s.run(stop, s.handle); ended <- struct{}{} }()
	go func() { _ = e.run(stop, e.handle); ended <- struct{}{} }()
	t.Cleanup(func() {
		close(stop)
		<-ended
		<-ended
		cancel()
		s.wait()
		e.wait()
	})
	return gatewayEnd, agentEnd
}

// FuzzSession feeds an agent's stream any packets, in any order, while a connection is open.
// Nothing may panic or hang, and the gateway's state must stay consistent.
func FuzzSession(f *testing.F) {
	for _, sample := range samples {
		f.Add(append([]byte{0}, sample.ours.encode()...), true)
	}
	f.Add([]byte{2, 4, 4, 2, 4, 8, 1}, false)
	metrics, err := NewMetrics(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, script []byte, extended bool) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		unread := budget.New(1 << 30)
		s := newSession(&wire{ctx: ctx}, "m", agentInfo{id: "a", extended: extended}, AgentServerOptions{MaxConnections: 2, QueueLimit: 1 << 10, Metrics: metrics}, unread)
		known := newConn(s.multiplexer, 1, addr("gateway"), addr("m"))
		other := newConn(s.multiplexer, 2, addr("gateway"), addr("m"))
		s.add(known)
		s.add(other)
		dialed := &pendingDial{target: "x", response: make(chan agentResponse, 1)}
		s.pending[7] = dialed
		limit := s.queueLimit + len(script) + 2*bufferCost
		for len(script) > 0 {
			n := min(int(script[0])+1, len(script))
			var p packet
			if err := p.decode(mem.BufferSlice{mem.SliceBuffer(script[1:n])}); err == nil {
				if err := s.handle(p); err != nil {
					t.Fatalf("a packet ended the session: %v", err)
				}
			}
			script = script[n:]
		}
		for _, c := range []*conn{known, other} {
			c.in.mu.Lock()
			queued := c.in.queued
			c.in.mu.Unlock()
			if queued > limit {
				t.Errorf("%d bytes are queued, the limit is %d", queued, limit)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
		select {
		case response := <-dialed.response:
			if response.conn != nil {
				response.conn.onClose = func() {} // it was never counted
				_ = response.conn.Close()
			}
		default:
		}
		if used := unread.Used(); used != 0 {
			t.Errorf("once all connections are closed, %d bytes are counted as unread", used)
		}
		if len(s.pending) > 1 {
			t.Errorf("%d dials are pending", len(s.pending))
		}
	})
}

func TestConn_PipeEndsAfterResetDuringBlockedWrite(t *testing.T) {
	for name, fail := range map[string]func(gatewayEnd, agentEnd *conn){
		"reset by the peer":   func(gatewayEnd, _ *conn) { _ = gatewayEnd.Reset() },
		"violation of limits": func(_, agentEnd *conn) { agentEnd.multiplexer.refuse(agentEnd, tunnel.ErrReset) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gatewayEnd, agentEnd := pairOfLinks(t)
				near, far := net.Pipe() // Nobody reads from far.
				defer far.Close()
				handle, err := tunnel.Dial(func(context.Context) (net.Conn, error) { return near, nil })(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					_ = handle(t.Context(), agentEnd)
				}()
				if _, err := gatewayEnd.Write(make([]byte, 200<<10)); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				fail(gatewayEnd, agentEnd)
				time.Sleep(time.Second)
				synctest.Wait()
				select {
				case <-ended:
				default:
					t.Fatal("the pipe still waits for its target a second after the failure")
				}
			})
		})
	}
}
