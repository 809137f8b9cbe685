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
	"sync"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"fleetgate.io/fleetgate/pkg/tunnel/native"
)

// Way is how an agent's session reaches the gateway.
type Way string

const (
	// ViaHub is through the hub's API server.
	ViaHub Way = "hub"
	// ViaPort is straight to the gateway's port for agents.
	ViaPort Way = "port"
)

// State is what the agent's tunnel is in.
type State struct {
	Connected bool
	// Way is how it is connected.
	Way Way
	// Reason is why it is not connected; nil while it is.
	Reason error
}

// Connector is the agent's side: it keeps one session to the hub up and serves the
// streams that the gateway opens in it. When the gateway asks it to connect anew, the
// old session stays until the new one stands and its own streams have ended. Fill in
// the fields, then call Run once.
type Connector struct {
	// Member is this member's name, for logs and profiles.
	Member string
	// Dial opens a connection on which the gateway starts a session; see [HubDialer].
	Dial func(ctx context.Context) (net.Conn, error)
	// Direct opens one at the port that a gateway has told of. When that works, the
	// session moves there; when it does not, it stays where Dial has made it. nil: it
	// always stays.
	Direct func(ctx context.Context, port PortInfo) (net.Conn, error)
	// Targets is everything that a gateway can reach here, by name.
	Targets map[string]Target
	// OnStateChange is told of every session and of every failed attempt, one after
	// the other. It must not block. Optional.
	OnStateChange func(State)
	// MaxStreams bounds the streams of the session; 0 is 4096.
	MaxStreams int
	// DialTimeout bounds one attempt to connect; 0 is 30 s.
	DialTimeout time.Duration
	// DrainTimeout is how long streams may go on after the end of Run's context, when
	// the gateway has been told to open no more; 0 ends them at once.
	DrainTimeout time.Duration
	// Unread bounds the bytes that all streams together hold for readers who do not
	// read; 0 is 256 MiB. Beyond it, streams that hold much are reset.
	Unread int64
	// Clock and Random (in [0,1)) decide the waits between attempts; without them
	// they are the real ones.
	Clock  clock.Clock
	Random func() float64

	carry carry
	held  *held
	// sessions counts those that are served.
	sessions *sync.WaitGroup
}

// Run holds a session until ctx ends, and connects again, after a wait, whenever it
// is lost. It returns nil when ctx has ended and all streams with it, or at once an
// error that tells which field is wrong.
func (c *Connector) Run(ctx context.Context) error {
	run, err := c.withDefaults()
	if err != nil {
		return err
	}
	pprof.Do(ctx, pprof.Labels("tunnel", "agent", "member", c.Member), func(ctx context.Context) {
		// Streams outlive ctx for the time of the drain.
		serving, stop := context.WithCancel(context.WithoutCancel(ctx))
		defer run.held.closing.Wait()
		defer run.sessions.Wait()
		defer stop()
		run.loop(ctx, serving)
		run.drain(serving)
	})
	return nil
}

// drain waits until the streams of all sessions have ended, or DrainTimeout is over.
func (c *Connector) drain(ctx context.Context) {
	if c.DrainTimeout <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.DrainTimeout)
	defer cancel()
	c.held.drain(ctx)
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
	if run.Unread <= 0 {
		run.Unread = defaultUnread / 2
	}
	if run.carry == nil {
		run.carry = carryNative(native.Agent, run.MaxStreams, native.NewBudget(run.Unread))
	}
	run.held, run.sessions = &held{}, &sync.WaitGroup{}
	return &run, nil
}

func (c *Connector) loop(ctx, serving context.Context) {
	log := klog.FromContext(ctx).WithValues("member", c.Member)
	failures := 0
	var next *road
	for ctx.Err() == nil {
		began := c.Clock.Now()
		var err error
		if next, err = c.connect(ctx, serving, next); next != nil {
			continue // the session moves, at once
		}
		if ctx.Err() != nil {
			return
		}
		if c.Clock.Since(began) >= stableAfter {
			failures = 0
		}
		failures++
		wait := reconnectDelay(failures, c.Random())
		if errors.Is(err, errAskedToMove) {
			log.V(2).Info("The gateway asks for a new tunnel", "connectAfter", wait.Round(time.Millisecond))
		} else {
			log.Info("Tunnel to the hub is down", "reason", err.Error(), "retryAfter", wait.Round(time.Millisecond))
			c.OnStateChange(State{Reason: err})
		}
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
func (c *Connector) connect(ctx, serving context.Context, on *road) (next *road, err error) {
	if on == nil {
		conn, err := c.dial(ctx)
		if err != nil {
			return nil, err
		}
		on = &road{conn, ViaHub}
	}
	carrier, err := c.carry(ctx, on.conn)
	if err != nil {
		return nil, err
	}
	klog.FromContext(ctx).Info("Tunnel to the hub is up", "member", c.Member, "way", on.way)
	c.held.replace(carrier)
	ended := make(chan error, 1)
	c.sessions.Go(func() {
		ended <- serveStreams(serving, carrier, c.Targets, c.MaxStreams)
	})
	c.OnStateChange(State{Connected: true, Way: on.way})
	search := c.newSearch(ctx, on.way)
	defer search.stop()
	for {
		select {
		case err := <-ended:
			return nil, err
		case <-carrier.Draining():
			return nil, errAskedToMove
		case message := <-carrier.Told():
			search.heard(message)
		case better := <-search.found:
			return better, nil
		case <-ctx.Done():
			carrier.Drain()
			return nil, context.Cause(ctx)
		}
	}
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
