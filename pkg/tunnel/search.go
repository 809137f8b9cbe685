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
	// directTimeout bounds one attempt to reach the gateway's own port.
	directTimeout = 10 * time.Second
	// directRetry is the mean wait until the next, after one that failed: a firewall
	// does not open often.
	directRetry = 5 * time.Minute
)

// search looks for a way to the gateway's own port while a session through the hub
// stands.
type search struct {
	connector *Connector
	// found gets at most one road.
	found chan *road
	port  chan PortInfo
	stop  func()
}

// newSearch starts one, or one that finds nothing if there is nothing better.
func (c *slot) newSearch(ctx context.Context, way Way) *search {
	s := &search{connector: c.Connector, found: make(chan *road, 1), port: make(chan PortInfo, 1), stop: func() {}}
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
			_ = unused.conn.Close()
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
	log := klog.FromContext(ctx).WithValues("member", s.connector.Member)
	var port PortInfo
	var retry <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case port = <-s.port:
		case <-retry:
		}
		conn, err := s.try(ctx, port)
		if err == nil {
			s.found <- conn
			return
		}
		if ctx.Err() == nil {
			log.V(1).Info("The gateway's own port cannot be reached, the tunnel stays with the hub's API server", "address", port.Address, "reason", err.Error())
		}
		wait := time.Duration((0.5 + s.connector.Random()) * float64(directRetry))
		retry = s.connector.Clock.After(wait)
	}
}

func (s *search) try(ctx context.Context, port PortInfo) (*road, error) {
	ctx, cancel := context.WithTimeout(ctx, directTimeout)
	defer cancel()
	conn, err := s.connector.Direct(ctx, port)
	if err != nil {
		return nil, err
	}
	return &road{conn, ViaPort}, nil
}
