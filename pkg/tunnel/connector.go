// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime/pprof"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"fleetgate.io/fleetgate/pkg/tunnel/native"
)

// State is what the agent's tunnel is in.
type State struct {
	Connected bool
	// Reason is why it is not connected; nil while it is.
	Reason error
}

// Connector is the agent's side: it keeps one session to the hub up and serves the
// streams that the gateway opens in it. Fill in the fields, then call Run once.
type Connector struct {
	// Member is this member's name, for logs and profiles.
	Member string
	// Dial opens a connection on which the gateway starts a session; see [HubDialer].
	Dial func(ctx context.Context) (net.Conn, error)
	// Targets is everything that a gateway can reach here, by name.
	Targets map[string]Target
	// OnStateChange is told of every session and of every failed attempt, one after
	// the other. It must not block. Optional.
	OnStateChange func(State)
	// MaxStreams bounds the streams of the session; 0 is 4096.
	MaxStreams int
	// DialTimeout bounds one attempt to connect; 0 is 30 s.
	DialTimeout time.Duration
	// Clock and Random (in [0,1)) decide the waits between attempts; without them
	// they are the real ones.
	Clock  clock.Clock
	Random func() float64

	carry carry
}

// Run holds a session until ctx ends, and connects again, after a wait, whenever it
// is lost. It returns nil when ctx has ended and all streams with it, or at once an
// error that tells which field is wrong.
func (c *Connector) Run(ctx context.Context) error {
	run, err := c.withDefaults()
	if err != nil {
		return err
	}
	pprof.Do(ctx, pprof.Labels("tunnel", "agent", "member", c.Member), run.loop)
	return nil
}

// withDefaults returns a copy to run with.
func (c *Connector) withDefaults() (*Connector, error) {
	if c.Member == "" || c.Dial == nil {
		return nil, errors.New("a tunnel connector needs the member's name and a way to dial the hub")
	}
	for name := range c.Targets {
		if err := validTarget(name); err != nil {
			return nil, err
		}
	}
	run := *c
	if run.OnStateChange == nil {
		run.OnStateChange = func(State) {}
	}
	if run.MaxStreams <= 0 {
		run.MaxStreams = defaultMaxStreams
	}
	if run.DialTimeout <= 0 {
		run.DialTimeout = 30 * time.Second
	}
	if run.Clock == nil {
		run.Clock = clock.RealClock{}
	}
	if run.Random == nil {
		run.Random = rand.Float64
	}
	if run.carry == nil {
		run.carry = carryNative(native.Agent, run.MaxStreams)
	}
	return &run, nil
}

func (c *Connector) loop(ctx context.Context) {
	log := klog.FromContext(ctx).WithValues("member", c.Member)
	failures := 0
	for ctx.Err() == nil {
		lasted, err := c.connect(ctx)
		if ctx.Err() != nil {
			return
		}
		if lasted >= stableAfter {
			failures = 0
		}
		failures++
		wait := reconnectDelay(failures, c.Random())
		log.Info("Tunnel to the hub is down", "reason", err.Error(), "retryAfter", wait.Round(time.Millisecond))
		c.OnStateChange(State{Reason: err})
		c.sleep(ctx, wait)
	}
}

func (c *Connector) sleep(ctx context.Context, wait time.Duration) {
	timer := c.Clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	}
}

// connect makes one session and serves it until it ends. It returns how long the
// session lasted, zero if there was none, and why it ended.
func (c *Connector) connect(ctx context.Context) (time.Duration, error) {
	conn, err := c.dial(ctx)
	if err != nil {
		return 0, err
	}
	carrier, err := c.carry(ctx, conn)
	if err != nil {
		return 0, err
	}
	defer carrier.Close()
	began := c.Clock.Now()
	klog.FromContext(ctx).Info("Tunnel to the hub is up", "member", c.Member)
	c.OnStateChange(State{Connected: true})
	err = serveStreams(ctx, carrier, c.Targets, c.MaxStreams)
	return c.Clock.Since(began), err
}

func (c *Connector) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.DialTimeout)
	defer cancel()
	conn, err := c.Dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("connecting the tunnel: %w", err)
	}
	return conn, nil
}
