// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// slot keeps one of an agent's sessions up.
type slot struct {
	*Connector
	index    int
	replicas *replicas
	states   *states

	held held
	// sessions counts those that are served: the one in use and those before it.
	sessions sync.WaitGroup
}

// run keeps the session up until ctx ends, and lets its streams finish then.
func (s *slot) run(ctx context.Context) {
	// Streams outlive ctx for the time of the drain.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer s.held.closing.Wait()
	defer s.sessions.Wait()
	defer stop()
	s.loop(ctx, serving)
	s.drain(serving)
}

// drain waits until the streams of all sessions have ended, or DrainTimeout is over.
func (s *slot) drain(ctx context.Context) {
	if s.DrainTimeout <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.DrainTimeout)
	defer cancel()
	s.held.drain(ctx)
}

func (s *slot) loop(ctx, serving context.Context) {
	failures := 0
	var next *road
	for ctx.Err() == nil {
		if next == nil && !s.replicas.await(ctx, s.index) {
			return
		}
		began := s.Clock.Now()
		var err error
		next, err = s.connect(ctx, serving, next)
		s.replicas.leave(s.index)
		if next != nil {
			continue // the session moves, at once
		}
		if ctx.Err() != nil {
			return
		}
		if s.Clock.Since(began) >= stableAfter {
			failures = 0
		}
		failures++
		wait := reconnectDelay(failures, s.Random())
		s.report(ctx, err, wait)
		s.sleep(ctx, wait)
	}
}

func (s *slot) report(ctx context.Context, err error, wait time.Duration) {
	log := klog.FromContext(ctx).WithValues("member", s.Member)
	if errors.Is(err, errAskedToMove) {
		log.V(2).Info("The gateway asks for a new tunnel", "connectAfter", wait.Round(time.Millisecond))
		return
	}
	if errors.Is(err, errSameReplica) {
		log.V(2).Info("Looking for another gateway", "reason", err.Error(), "retryAfter", wait.Round(time.Millisecond))
	} else {
		log.Info("Tunnel to the hub is down", "reason", err.Error(), "retryAfter", wait.Round(time.Millisecond))
	}
	s.states.set(s.index, State{Reason: err})
}

func (s *slot) sleep(ctx context.Context, wait time.Duration) {
	timer := s.Clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	}
}

// errAskedToMove is why connect returns while its session goes on.
var errAskedToMove = errors.New("the gateway asks the agent to connect anew")

// road is a connection on which a gateway starts a session.
type road struct {
	conn net.Conn
	way  Way
}

// connect makes one session, on a road if there is one already, and serves it until
// it ends or another should take its place: on the road that it returns, or on one to
// be dialed.
func (s *slot) connect(ctx, serving context.Context, on *road) (next *road, err error) {
	if on == nil {
		conn, err := s.dial(ctx)
		if err != nil {
			return nil, err
		}
		on = &road{conn, ViaHub}
	}
	carrier, err := s.carry(ctx, on.conn)
	if err != nil {
		return nil, err
	}
	klog.FromContext(ctx).Info("Tunnel to the hub is up", "member", s.Member, "way", on.way)
	s.held.replace(carrier)
	ended := make(chan error, 1)
	s.sessions.Go(func() {
		ended <- serveStreams(serving, carrier, s.Targets, s.MaxStreams)
	})
	s.states.set(s.index, State{Connected: true, Way: on.way})
	search := s.newSearch(ctx, on.way)
	defer search.stop()
	for {
		select {
		case err := <-ended:
			return nil, err
		case <-carrier.Draining():
			return nil, errAskedToMove
		case message := <-carrier.Told():
			if err := s.heard(message, search); err != nil {
				carrier.Drain()
				return nil, err
			}
		case better := <-search.found:
			return better, nil
		case <-ctx.Done():
			carrier.Drain()
			return nil, context.Cause(ctx)
		}
	}
}

// heard takes what the gateway tells. An error says that the session is of no use.
func (s *slot) heard(message []byte, search *search) error {
	info, err := ParseInfo(message)
	if err != nil {
		return nil // one of a later version
	}
	if info.Replica != "" {
		if err := s.replicas.claim(s.index, info); err != nil {
			return err
		}
	}
	if info.Port != nil {
		search.heard(*info.Port)
	}
	return nil
}

func (s *slot) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.DialTimeout)
	defer cancel()
	conn, err := s.Dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("connecting the tunnel: %w", err)
	}
	return conn, nil
}
