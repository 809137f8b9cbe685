// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"runtime/pprof"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"fleetgate.io/fleetgate/pkg/tunnel/budget"
	"fleetgate.io/fleetgate/pkg/tunnel/native"
)

// Way is how an agent's session reaches the gateway.
type Way string

const (
	// ViaHub is through the hub's API server.
	ViaHub Way = "hub"
	// ViaPort is straight to the gateway's port for agents.
	ViaPort Way = "port"
	// ViaKonnectivity is by the protocol of Konnectivity; see package konnectivity.
	ViaKonnectivity Way = "konnectivity"
)

// State is what the agent's tunnel is in.
type State struct {
	Connected bool
	// Way is how it is connected.
	Way Way
	// Reason is why it is not connected; nil while it is.
	Reason error
}

// Connector is the agent's side: it keeps a session to the hub up, or several, and
// serves the streams that the gateway opens there. When the gateway asks it to connect
// anew, the old session stays until the new one stands and its own streams have ended.
// Fill in the fields, then call Run once.
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
	// OnStateChange is told of every session, and of every failed attempt while there is none, one
	// after the other: one that a gateway asks to replace is there until another has taken its place.
	// It must not block. Optional.
	OnStateChange func(State)
	// Sessions is to how many gateways of a hub a session is kept, as far as there are
	// so many; 0 is 1. Each is served like the others.
	Sessions int
	// MaxStreams bounds the streams of a session; 0 is 4096.
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
}

// Run holds sessions until ctx ends, and connects again, after a wait, whenever one
// is lost. It returns nil when ctx has ended and all streams with it, or at once an
// error that tells which field is wrong.
func (c *Connector) Run(ctx context.Context) error {
	run, err := c.withDefaults()
	if err != nil {
		return err
	}
	pprof.Do(ctx, pprof.Labels("tunnel", "agent", "member", c.Member), func(ctx context.Context) {
		known, states := newReplicas(run.Sessions), &states{report: run.OnStateChange, bySlot: map[int]State{}}
		var slots sync.WaitGroup
		for i := range run.Sessions {
			s := &slot{Connector: run, index: i, replicas: known, states: states}
			slots.Go(func() { s.run(ctx) })
		}
		slots.Wait()
	})
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
	if run.Sessions <= 0 {
		run.Sessions = 1
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
		run.carry = carryNative(native.Agent, run.MaxStreams, budget.New(run.Unread))
	}
	return &run, nil
}
