// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"

	"k8s.io/klog/v2"
)

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
	failures, met := 0, 0
	var next *candidate
	for ctx.Err() == nil {
		if next == nil && !s.replicas.await(ctx, s.index) {
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
			failures, met = 0, 0
		}
		var wait time.Duration
		if errors.Is(err, errSameReplica) {
			// The load balancer chose a gateway with an existing session. Nothing is broken, so the
			// first waits are short.
			met++
			wait = sameReplicaDelay(met, s.replicas.fleet(), s.Random())
		} else {
			failures++
			wait = reconnectDelay(failures, reconnectFirstOf(s.replicas.fleet(), err), s.Random())
		}
		s.report(ctx, err, wait)
		s.sleep(ctx, wait)
	}
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
	case errors.Is(err, errSameReplica):
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

// candidate is a session that a gateway has started, and how it was reached.
type candidate struct {
	mux  Multiplexer
	path Path
	// info is the message that the gateway sent before the session was taken into use; nil if it
	// was not read yet.
	info []byte
}

// connect dials one session, unless there is a candidate already, and serves it until it ends or
// another should replace it. It returns the candidate to continue with, or nil if one has to be
// dialed.
func (s *sessionLoop) connect(ctx, serving context.Context, on *candidate) (next *candidate, err error) {
	if on == nil {
		if on, err = s.dial(ctx); err != nil {
			return nil, err
		}
	}
	mux := on.mux
	klog.FromContext(ctx).Info("Connected the tunnel to the hub", "member", s.Member, "path", on.path)
	s.active.replace(mux)
	s.replicas.arrive(s.index)
	ended := make(chan error, 1)
	s.sessions.Go(func() {
		ended <- serveStreams(serving, mux, s.Targets, s.MaxStreams)
	})
	s.states.set(s.index, State{Connected: true, Path: on.path})
	search := s.newSearch(ctx, on.path)
	defer search.stop()
	infos := mux.Infos()
	if on.info != nil {
		if err := s.handleInfo(on, on.info, search); err != nil {
			return nil, s.discard(mux, err)
		}
	}
	for {
		select {
		case err := <-ended:
			return nil, err
		case <-mux.Draining():
			return nil, errMoveRequested
		case message := <-infos:
			if err := s.handleInfo(on, message, search); err != nil {
				return nil, s.discard(mux, err)
			}
		case better := <-search.found:
			return better, nil
		case <-ctx.Done():
			mux.Drain()
			return nil, context.Cause(ctx)
		}
	}
}

// discard drains a session that is of no use, and returns the reason.
func (s *sessionLoop) discard(mux Multiplexer, reason error) error {
	mux.Drain()
	s.active.retire()
	return reason
}

// handleInfo handles the gateway's message. An error means that the session is of no use.
func (s *sessionLoop) handleInfo(on *candidate, message []byte, search *search) error {
	info, err := ParseInfo(message)
	if err != nil {
		//lint:ignore nilerr It is of a later version.
		return nil
	}
	if err := s.replicas.claim(s.index, info); err != nil {
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
// a retry there makes sense: nobody answers and the agent has no session to any gateway, so the hub
// could not reach one either; or the hub is too busy to issue a token, and would be too busy for a
// tunnel. When that takes too long, or after any other failure, it returns no candidate and no
// error, and the agent connects through the hub.
func (s *sessionLoop) dialBack(ctx context.Context) (*candidate, error) {
	if s.back == nil {
		return nil, nil
	}
	if s.lost.IsZero() {
		s.lost = s.Clock.Now()
	}
	candidate, err := s.dialPort(ctx, *s.back)
	if err == nil || ctx.Err() != nil {
		return candidate, err
	}
	if errors.Is(err, errSameReplica) || errors.Is(err, errNoToken) || isUnreachable(err) && !s.replicas.hasSession() {
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

func (s *sessionLoop) dial(ctx context.Context) (*candidate, error) {
	if back, err := s.dialBack(ctx); back != nil || err != nil {
		return back, err
	}
	dialing, cancel := context.WithTimeout(ctx, s.DialTimeout)
	defer cancel()
	conn, err := s.Dial(dialing)
	if err != nil {
		return nil, fmt.Errorf("connecting the tunnel: %w", err)
	}
	mux, err := s.newMultiplexer(ctx, conn)
	if err != nil {
		return nil, err
	}
	s.back = nil
	return &candidate{mux: mux, path: ViaHub}, nil
}
