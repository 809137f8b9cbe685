// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"

	"k8s.io/klog/v2"
)

// infoTimeout is how long a session that replaces another one waits for the gateway's message.
const infoTimeout = 2 * time.Second

// sessionLoop keeps one of an agent's sessions.
type sessionLoop struct {
	*Connector
	index    int
	replicas *replicas
	states   *states

	// back is the port of the last session, nil if that was through the hub, or if the port cannot
	// be reached. lost is when that session ended, zero while it lasts.
	back *PortInfo
	lost time.Time
	// met counts the connections in a row that ended in an unsuitable gateway.
	met int

	active agentSessions
	// sessions counts the sessions that are served: the one in use and earlier ones.
	sessions sync.WaitGroup
}

// run keeps the session until ctx ends, and then lets its streams finish.
func (s *sessionLoop) run(ctx context.Context) {
	// Streams outlive ctx for the time of the drain.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer s.active.closing.Wait()
	defer s.sessions.Wait()
	defer stop()
	s.loop(ctx, serving)
	s.drain(serving)
}

// drain waits until the streams of all sessions have ended, or DrainTimeout is over.
func (s *sessionLoop) drain(ctx context.Context) {
	if s.DrainTimeout <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.DrainTimeout)
	defer cancel()
	s.active.drain(ctx)
}

func (s *sessionLoop) loop(ctx, serving context.Context) {
	failures := 0
	var next *candidate
	for ctx.Err() == nil {
		if next == nil && !s.await(ctx) {
			return
		}
		began := s.Clock.Now()
		var err error
		next, err = s.connect(ctx, serving, next)
		if next != nil {
			continue // the session moves at once; no other session uses its gateway in the meantime
		}
		s.replicas.leave(s.index)
		if ctx.Err() != nil {
			return
		}
		if s.Clock.Since(began) >= stableAfter {
			failures, s.met = 0, 0
		}
		var wait time.Duration
		if isUnsuitable(err) {
			// The load balancer has chosen that gateway. Nothing is broken, so the first waits are
			// short.
			s.met++
			wait = sameReplicaDelay(s.met, s.replicas.fleet(), s.Random())
		} else {
			failures++
			wait = reconnectDelay(failures, reconnectFirstOf(s.replicas.fleet(), err), s.Random())
		}
		s.report(ctx, err, wait)
		s.sleep(ctx, wait)
	}
}

// await returns when there is a gateway for the session. When another gateway starts, all agents
// learn of it at the same time, so each waits before it connects.
func (s *sessionLoop) await(ctx context.Context) bool {
	waited, ok := s.replicas.await(ctx, s.index)
	if waited && ok {
		s.sleep(ctx, reconnectDelay(1, reconnectFirstOf(s.replicas.fleet(), nil), s.Random()))
	}
	return ok && ctx.Err() == nil
}

func (s *sessionLoop) report(ctx context.Context, err error, wait time.Duration) {
	log := klog.FromContext(ctx).WithValues("member", s.Member)
	if errors.Is(err, errMoveRequested) {
		log.V(2).Info("The gateway requests a new tunnel", "connectAfter", wait.Round(time.Millisecond))
		return
	}
	// A session that a gateway asks to replace continues until its replacement is established.
	serves := s.active.serves()
	switch {
	case isUnsuitable(err):
		log.V(2).Info("Looking for another gateway", "reason", err.Error(), "retryAfter", wait.Round(time.Millisecond))
	case serves:
		log.Info("Could not open the new tunnel that the gateway requested; keeping the previous one", "reason", err.Error(), "retryAfter", wait.Round(time.Millisecond))
	default:
		log.Info("Lost the tunnel to the hub", "reason", err.Error(), "retryAfter", wait.Round(time.Millisecond))
	}
	if !serves {
		s.states.set(s.index, State{Reason: err})
	}
}

func (s *sessionLoop) sleep(ctx context.Context, wait time.Duration) {
	timer := s.Clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	}
}

// errMoveRequested is why connect returns while its session continues.
var errMoveRequested = errors.New("the gateway requests that the agent reconnects")

// candidate is a session that a gateway has started, and how it was reached. Its streams are served
// from the beginning: the gateway uses it for dials before the agent does.
type candidate struct {
	mux  Multiplexer
	path Path
	// info is the gateway's message, if the session is taken into use only after that.
	info []byte
	// ended receives why the session has ended.
	ended chan error
	// moves is true if the agent has time to try other gateways, because the previous session serves
	// and not too many were tried.
	moves bool
}

// start begins a session on a connection, and serves its streams.
// port is the gateway's own port, if the connection leads there.
func (s *sessionLoop) start(ctx, serving context.Context, conn net.Conn, path Path, port *PortInfo) (*candidate, error) {
	mux, err := s.newMultiplexer(ctx, conn)
	if err != nil {
		return nil, err
	}
	c := &candidate{mux: mux, path: path, ended: make(chan error, 1)}
	s.sessions.Go(func() {
		c.ended <- serveStreams(serving, mux, s.Targets, s.dataDialerFor(port), s.MaxStreams)
	})
	return c, nil
}

// awaitInfo waits for the gateway's message. By then dials find the session.
func (c *candidate) awaitInfo(ctx context.Context) error {
	select {
	case c.info = <-c.mux.Infos():
		return nil
	case <-c.mux.Done():
		return c.mux.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// connect dials one session, unless there is a candidate already, and keeps it until it ends or
// another should replace it. It returns the candidate to continue with, or nil if one has to be
// dialed.
func (s *sessionLoop) connect(ctx, serving context.Context, on *candidate) (next *candidate, err error) {
	if on == nil {
		if on, err = s.dial(ctx, serving); err != nil {
			return nil, err
		}
	}
	s.replicas.arrive(s.index)
	search := s.newSearch(ctx, serving, on.path)
	defer search.stop()
	if on.info != nil {
		if err := s.handleInfo(on, on.info, search); err != nil {
			s.active.retire(on.mux)
			return nil, err
		}
	}
	klog.FromContext(ctx).Info("Connected the tunnel to the hub", "member", s.Member, "path", on.path)
	on.moves = false
	s.active.replace(on.mux)
	s.states.set(s.index, State{Connected: true, Path: on.path})
	return s.keep(ctx, on, search)
}

// keep returns when the session in use has ended, or should be replaced.
func (s *sessionLoop) keep(ctx context.Context, on *candidate, search *search) (next *candidate, err error) {
	for {
		select {
		case err := <-on.ended:
			return nil, err
		case <-on.mux.Draining():
			return nil, errMoveRequested
		case message := <-on.mux.Infos():
			if err := s.handleInfo(on, message, search); err != nil {
				s.active.retire(on.mux)
				return nil, err
			}
		case better := <-search.found:
			return better, nil
		case <-ctx.Done():
			on.mux.Drain()
			return nil, context.Cause(ctx)
		}
	}
}

// handleInfo handles the gateway's message. An error means that the session is of no use.
func (s *sessionLoop) handleInfo(on *candidate, message []byte, search *search) error {
	info, err := ParseInfo(message)
	if err != nil {
		//lint:ignore nilerr It is of a later version.
		return nil
	}
	if err := s.replicas.claim(s.index, info, on.moves); err != nil {
		return err
	}
	switch {
	case info.Port == nil:
	case on.path == ViaPort:
		s.back, s.lost = info.Port, time.Time{}
	default:
		search.setPort(*info.Port)
	}
	return nil
}

// dialBack connects to the port of the lost session. When a gateway restarts, a thousand agents
// then ask the hub only for a token each, and not for a tunnel. It returns a retryable error while
// a retry there makes sense: nobody listens there and the agent has no session to any gateway, so the hub
// could not reach one either; or the hub is too busy to issue a token, and would be too busy for a
// tunnel. When that takes too long, or after any other failure, it returns no candidate and no
// error, and the agent connects through the hub.
func (s *sessionLoop) dialBack(ctx, serving context.Context) (*candidate, error) {
	if s.back == nil {
		return nil, nil
	}
	if s.lost.IsZero() {
		s.lost = s.Clock.Now()
	}
	candidate, err := s.dialPort(ctx, serving, *s.back, s.active.serves())
	if err == nil || ctx.Err() != nil {
		return candidate, err
	}
	if isUnsuitable(err) || errors.Is(err, errNoToken) || isUnreachable(err) && !s.replicas.hasSession() {
		if s.Clock.Since(s.lost) < portPatience {
			return nil, fmt.Errorf("reconnecting at the port of the gateway: %w", err)
		}
		return nil, nil
	}
	klog.FromContext(ctx).V(1).Info("Could not reconnect at the port of the gateway; connecting through the hub", "member", s.Member, "address", s.back.Address, "reason", err.Error())
	s.back = nil
	return nil, nil
}

// isUnreachable is true for errors of an attempt if no gateway serves the address, including errors
// of a load balancer that accepts connections for it.
func isUnreachable(err error) bool {
	var response *HubError
	if errors.As(err, &response) {
		return response.StatusCode == http.StatusServiceUnavailable
	}
	return slices.ContainsFunc([]error{syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, io.EOF, io.ErrUnexpectedEOF, ErrSessionClosed}, func(target error) bool {
		return errors.Is(err, target)
	})
}

// dial starts a session. If it replaces another one that still serves, the gateway's message has
// arrived, and dials find the new session. Gateways that send no message are not waited for longer
// than infoTimeout.
func (s *sessionLoop) dial(ctx, serving context.Context) (*candidate, error) {
	if back, err := s.dialBack(ctx, serving); back != nil || err != nil {
		return back, err
	}
	dialing, cancel := context.WithTimeout(ctx, s.DialTimeout)
	defer cancel()
	conn, err := s.Dial(dialing)
	if err != nil {
		return nil, fmt.Errorf("connecting the tunnel: %w", err)
	}
	on, err := s.start(ctx, serving, conn, ViaHub, nil)
	if err != nil {
		return nil, err
	}
	s.back = nil
	if s.active.serves() {
		on.moves = s.met < sameReplicaSearches
		waiting, cancel := context.WithTimeout(ctx, infoTimeout)
		defer cancel()
		_ = on.awaitInfo(waiting) // a session that has ended is noticed later
	}
	return on, nil
}
