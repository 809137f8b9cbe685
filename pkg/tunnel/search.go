// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

const (
	// directTimeout limits one attempt to reach the gateway's own port.
	directTimeout = 10 * time.Second
	// directRetry is the mean delay after a failed attempt. It is long, because firewall rules
	// change rarely.
	directRetry = 5 * time.Minute
	// directOthers is how many attempts that end in a gateway with an existing session are retried
	// with short delays.
	directOthers = 10
	// portPatience is how long the agent retries the port of a lost session before it uses the hub.
	portPatience = 10 * time.Second
)

// search tries to establish a session at the gateway's own port while the agent has one through the hub.
type search struct {
	*sessionLoop
	// found gets at most one candidate.
	found chan *candidate
	port  chan PortInfo
	stop  func()
}

// newSearch starts a search, or returns one that finds nothing if there is nothing better.
func (l *sessionLoop) newSearch(ctx, serving context.Context, path Path) *search {
	s := &search{sessionLoop: l, found: make(chan *candidate, 1), port: make(chan PortInfo, 1), stop: func() {}}
	if l.Direct == nil || path != ViaHub {
		return s
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { s.run(ctx, serving) })
	s.stop = func() {
		cancel()
		running.Wait()
		select {
		case unused := <-s.found:
			s.active.retire(unused.mux)
		default:
		}
	}
	return s
}

// setPort receives the port that the gateway announces.
func (s *search) setPort(port PortInfo) {
	select {
	case <-s.port:
	default:
	}
	s.port <- port
}

// run tries the latest announced port until it works.
func (s *search) run(ctx, serving context.Context) {
	log := klog.FromContext(ctx).WithValues("member", s.Member)
	var port PortInfo
	var retry <-chan time.Time
	met := 0
	for {
		select {
		case <-ctx.Done():
			return
		case port = <-s.port:
		case <-retry:
		}
		better, err := s.dialPort(ctx, serving, port, met < directOthers)
		if err == nil {
			s.found <- better
			return
		}
		wait := time.Duration((0.5 + s.Random()) * float64(directRetry))
		if isUnsuitable(err) && met < directOthers {
			met++
			wait = reconnectDelay(min(met, sameReplicaWaits), reconnectFirst, s.Random())
		} else if ctx.Err() == nil {
			met = 0
			log.V(1).Info("Could not reach the port of the gateway; keeping the tunnel through the hub's API server", "address", port.Address, "reason", err.Error())
		}
		retry = s.Clock.After(wait)
	}
}

// dialPort starts a session at the port, and checks in which gateway it ends, because several may
// share one address.
func (s *sessionLoop) dialPort(ctx, serving context.Context, port PortInfo, moves bool) (*candidate, error) {
	ctx, cancel := context.WithTimeout(ctx, directTimeout)
	defer cancel()
	conn, err := s.Direct(ctx, port)
	if err != nil {
		return nil, err
	}
	on, err := s.start(ctx, serving, conn, ViaPort, &port)
	if err != nil {
		return nil, err
	}
	if err = on.awaitInfo(ctx); err == nil {
		err = s.isUsable(on, moves)
	}
	if err != nil {
		s.active.retire(on.mux)
		return nil, err
	}
	return on, nil
}

// isUsable returns why the session should end in another gateway.
func (s *sessionLoop) isUsable(on *candidate, moves bool) error {
	info, err := ParseInfo(on.info)
	if err != nil || info.Replica == "" {
		//lint:ignore nilerr It is of a later version.
		return nil
	}
	if !s.replicas.isFree(s.index, info.Replica) {
		return errSameReplica
	}
	if moves && info.Full && !s.replicas.isOwn(s.index, info.Replica) {
		return errFull
	}
	return nil
}
