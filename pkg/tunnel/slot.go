// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"fmt"
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
	failures, met := 0, 0
	var next *road
	for ctx.Err() == nil {
		if next == nil && !s.replicas.await(ctx, s.index) {
			return
		}
		began := s.Clock.Now()
		var err error
		next, err = s.connect(ctx, serving, next)
		if next != nil {
			continue // the session moves, at once; no other slot goes to its gateway meanwhile
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
			// Chance has led to the wrong one: nothing is broken that would need time.
			met++
			wait = reconnectDelay(min(met, sameReplicaWaits), s.Random())
		} else {
			failures++
			wait = reconnectDelay(failures, s.Random())
		}
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

// road is a session that a gateway has started, and how it was reached.
type road struct {
	carrier Carrier
	way     Way
	// told is what the gateway told before the session was taken into use; nil if
	// nobody has listened yet.
	told []byte
}

// connect makes one session, on a road if there is one already, and serves it until
// it ends or another should take its place: on the road that it returns, or on one to
// be dialed.
func (s *slot) connect(ctx, serving context.Context, on *road) (next *road, err error) {
	if on == nil {
		if on, err = s.dial(ctx); err != nil {
			return nil, err
		}
	}
	carrier := on.carrier
	klog.FromContext(ctx).Info("Tunnel to the hub is up", "member", s.Member, "way", on.way)
	s.held.replace(carrier)
	s.replicas.arrive(s.index)
	ended := make(chan error, 1)
	s.sessions.Go(func() {
		ended <- serveStreams(serving, carrier, s.Targets, s.MaxStreams)
	})
	s.states.set(s.index, State{Connected: true, Way: on.way})
	search := s.newSearch(ctx, on.way)
	defer search.stop()
	told := carrier.Told()
	if on.told != nil {
		if err := s.heard(on.told, search); err != nil {
			return nil, s.turnAway(carrier, err)
		}
	}
	for {
		select {
		case err := <-ended:
			return nil, err
		case <-carrier.Draining():
			return nil, errAskedToMove
		case message := <-told:
			if err := s.heard(message, search); err != nil {
				return nil, s.turnAway(carrier, err)
			}
		case better := <-search.found:
			return better, nil
		case <-ctx.Done():
			carrier.Drain()
			return nil, context.Cause(ctx)
		}
	}
}

// turnAway lets a session end that is of no use, and returns why it is not.
func (s *slot) turnAway(carrier Carrier, reason error) error {
	carrier.Drain()
	s.held.retire()
	return reason
}

// heard takes what the gateway tells. An error says that the session is of no use.
func (s *slot) heard(message []byte, search *search) error {
	info, err := ParseInfo(message)
	if err != nil {
		//lint:ignore nilerr It is of a later version.
		return nil
	}
	if err := s.replicas.claim(s.index, info); err != nil {
		return err
	}
	if info.Port != nil {
		search.heard(*info.Port)
	}
	return nil
}

func (s *slot) dial(ctx context.Context) (*road, error) {
	dialing, cancel := context.WithTimeout(ctx, s.DialTimeout)
	defer cancel()
	conn, err := s.Dial(dialing)
	if err != nil {
		return nil, fmt.Errorf("connecting the tunnel: %w", err)
	}
	carrier, err := s.carry(ctx, conn)
	if err != nil {
		return nil, err
	}
	return &road{carrier: carrier, way: ViaHub}, nil
}
