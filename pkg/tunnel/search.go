// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

const (
	// directTimeout bounds one attempt to reach the gateway's own port.
	directTimeout = 10 * time.Second
	// directRetry is the mean wait until the next, after one that failed: a firewall
	// does not open often.
	directRetry = 5 * time.Minute
	// directOthers is how often one that led to a gateway to which there is a session
	// already is followed by another, at the waits for that.
	directOthers = 10
	// backPatience is for how long after a session was lost the port that it went to is waited for.
	backPatience = 10 * time.Second
)

// search looks for a way to the gateway's own port while a session through the hub
// stands.
type search struct {
	*slot
	// found gets at most one road.
	found chan *road
	port  chan PortInfo
	stop  func()
}

// newSearch starts one, or one that finds nothing if there is nothing better.
func (c *slot) newSearch(ctx context.Context, way Way) *search {
	s := &search{slot: c, found: make(chan *road, 1), port: make(chan PortInfo, 1), stop: func() {}}
	if c.Direct == nil || way != ViaHub {
		return s
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { s.run(ctx) })
	s.stop = func() {
		cancel()
		running.Wait()
		select {
		case unused := <-s.found:
			_ = unused.carrier.Close()
		default:
		}
	}
	return s
}

// heard takes the port that the gateway tells of.
func (s *search) heard(port PortInfo) {
	select {
	case <-s.port:
	default:
	}
	s.port <- port
}

// run tries the latest port that was heard of until it works.
func (s *search) run(ctx context.Context) {
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
		better, err := s.dialPort(ctx, port)
		if err == nil {
			s.found <- better
			return
		}
		wait := time.Duration((0.5 + s.Random()) * float64(directRetry))
		if errors.Is(err, errSameReplica) && met < directOthers {
			met++
			wait = reconnectDelay(min(met, sameReplicaWaits), reconnectFirst, s.Random())
		} else if ctx.Err() == nil {
			met = 0
			log.V(1).Info("The gateway's own port cannot be reached, the tunnel stays with the hub's API server", "address", port.Address, "reason", err.Error())
		}
		retry = s.Clock.After(wait)
	}
}

// dialPort starts a session at the port, and looks which gateway it ends in: behind one
// address there may be several.
func (s *slot) dialPort(ctx context.Context, port PortInfo) (*road, error) {
	ctx, cancel := context.WithTimeout(ctx, directTimeout)
	defer cancel()
	conn, err := s.Direct(ctx, port)
	if err != nil {
		return nil, err
	}
	carrier, err := s.carry(ctx, conn)
	if err != nil {
		return nil, err
	}
	select {
	case told := <-carrier.Told():
		info, err := ParseInfo(told)
		if err == nil && info.Replica != "" && !s.replicas.isFree(s.index, info.Replica) {
			_ = carrier.Close()
			return nil, errSameReplica
		}
		return &road{carrier: carrier, way: ViaPort, told: told}, nil
	case <-carrier.Done():
		return nil, carrier.Err()
	case <-ctx.Done():
		_ = carrier.Close()
		return nil, context.Cause(ctx)
	}
}
