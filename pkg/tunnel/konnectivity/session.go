// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/budget"
)

// session is the gateway's end of one agent's stream.
type session struct {
	*multiplexer
	member      string
	agent       agentInfo
	streamIndex int
	// asks is the maximum of its connections, including pending ones.
	asks    int64
	open    atomic.Int64
	metrics *Metrics
	// established counts the member's connections.
	established prometheus.Gauge
	// stop is closed to end the session from this side.
	stop   chan struct{}
	ending sync.Once
	// retired is set once no new connections should use it: the agent drains, or its credential has
	// expired. It is used only while there is no other session.
	retired atomic.Bool

	// dials guards pending, the unanswered dials by their random number. An answer on another
	// session finds nothing here.
	dials   sync.Mutex
	pending map[int64]*pendingDial
}

type pendingDial struct {
	target string
	// response has room for one, so that the receiver never waits.
	response chan agentResponse
}

type agentResponse struct {
	conn *conn
	err  error
}

func newSession(stream messageStream, member string, agent agentInfo, o AgentServerOptions, unread *budget.Budget) *session {
	m := o.Metrics
	return &session{
		multiplexer: newMultiplexer(stream, agent.extended, true, o.QueueLimit, unread, m.streamMeter(member)),
		member:      member, agent: agent, asks: int64(o.MaxConnections), metrics: m,
		established: m.conns.WithLabelValues(member), stop: make(chan struct{}), pending: map[int64]*pendingDial{},
	}
}

// end ends the session and all its connections.
func (s *session) end() { s.ending.Do(func() { close(s.stop) }) }

// retire makes dials prefer other sessions. Our agent reconnects when it is asked to.
func (s *session) retire() {
	s.retired.Store(true)
	if s.agent.extended {
		s.out.send(packet{kind: drain})
	}
}

// handle handles one packet of the agent. An agent can end only its own connections: invalid
// packets are ignored.
func (s *session) handle(p packet) error {
	switch p.kind {
	case data:
		s.deliver(p)
	case dialResponse:
		s.handleDialResponse(p)
	case closeResponse:
		if c := s.conn(p.connID); c != nil {
			c.closedByPeer(p.reason, nil)
		}
	case dialClose:
		s.refused(p)
	case drain:
		s.retired.Store(true)
	case end:
		s.halfClosed(p.connID)
	case credit:
		s.credited(p)
	}
	return nil
}

// handleDialResponse handles the response to a dial. If nobody waits for it, it closes the connection:
// upstream's agents do not learn that a dial was cancelled.
func (s *session) handleDialResponse(p packet) {
	d := s.takePending(p.random)
	if d == nil {
		s.meter.foreign(p.kind)
		s.metrics.dialFailure("unrecognized_response")
		if p.reason == "" && p.connID != 0 && s.conn(p.connID) == nil {
			s.out.send(packet{kind: closeRequest, connID: p.connID})
		}
		return
	}
	if p.reason != "" || p.connID == 0 {
		s.metrics.dialFailure("error_response")
		d.response <- agentResponse{err: refusal(p)}
		return
	}
	c := newConn(s.multiplexer, p.connID, addr("gateway"), addr(s.member+"/"+d.target))
	c.onClose = s.release
	if !s.add(c) {
		d.response <- agentResponse{err: fmt.Errorf("the agent answered with connection %d, which is in use", p.connID)}
		return
	}
	d.response <- agentResponse{conn: c}
}

// refusal is the error in the agent's response. Only our own agents send a code.
func refusal(p packet) error {
	code, message := tunnel.Code(p.code), p.reason
	if code == 0 {
		code = tunnel.Unreachable
	}
	if message == "" {
		message = "the agent named no connection"
	}
	return &tunnel.RefusedError{Code: code, Message: message}
}

// refused handles an agent that ends a dial before it answers.
func (s *session) refused(p packet) {
	if d := s.takePending(p.random); d != nil {
		s.metrics.dialFailure("backend_close")
		d.response <- agentResponse{err: &tunnel.RefusedError{Code: tunnel.Unreachable, Message: "the agent closed the dial"}}
	}
}

func (s *session) takePending(random int64) *pendingDial {
	s.dials.Lock()
	defer s.dials.Unlock()
	d := s.pending[random]
	delete(s.pending, random)
	return d
}

// dial asks the agent for a connection and waits for the response, until ctx ends.
func (s *session) dial(ctx context.Context, target, protocol, address string) (net.Conn, error) {
	if s.open.Add(1) > s.asks {
		s.open.Add(-1)
		return nil, &tunnel.RefusedError{Code: tunnel.Busy, Message: fmt.Sprintf("all %d connections of the session are in use", s.asks)}
	}
	c, err := s.dialBackend(ctx, target, protocol, address)
	if err != nil {
		s.open.Add(-1)
		return nil, err
	}
	return c, nil
}

func (s *session) release() {
	s.open.Add(-1)
	s.metrics.established.Dec()
	s.established.Dec()
}

func (s *session) dialBackend(ctx context.Context, target, protocol, address string) (*conn, error) {
	began := time.Now()
	random, err := randomNumber()
	if err != nil {
		return nil, err
	}
	d := &pendingDial{target: target, response: make(chan agentResponse, 1)}
	s.dials.Lock()
	s.pending[random] = d
	s.dials.Unlock()
	s.expect(1)
	s.metrics.pendingDials.Inc()
	defer func() {
		s.expect(-1)
		s.metrics.pendingDials.Dec()
	}()
	s.out.send(packet{kind: dialRequest, protocol: protocol, address: address, random: random})
	select {
	case response := <-d.response:
		if response.err != nil {
			return nil, response.err
		}
		since(s.metrics.dialSeconds, began)
		s.metrics.established.Inc()
		s.established.Inc()
		return response.conn, nil
	case <-s.done:
		err = s.err
	case <-ctx.Done():
		err = context.Cause(ctx)
		s.metrics.dialFailure("frontend_close")
		s.out.send(packet{kind: dialClose, random: random})
	}
	s.giveUp(random, d)
	return nil, err
}

// giveUp cancels a dial, and closes a connection that its answer may have opened meanwhile.
func (s *session) giveUp(random int64, d *pendingDial) {
	if s.takePending(random) != nil {
		return
	}
	if response := <-d.response; response.conn != nil {
		response.conn.onClose = func() {} // it was never counted
		_ = response.conn.Reset()
	}
}

// randomNumber identifies dials and cannot be guessed. Never zero.
func randomNumber() (int64, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return 0, fmt.Errorf("getting a random number: %w", err)
	}
	return int64(binary.BigEndian.Uint64(b[:])>>1) | 1, nil
}

// isBusy is true if another session of the member may have room.
func isBusy(err error) bool {
	var refused *tunnel.RefusedError
	return errors.As(err, &refused) && refused.Code == tunnel.Busy
}
