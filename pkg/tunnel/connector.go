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

// Path is how an agent's session reaches the gateway.
type Path string

const (
	// ViaHub is through the hub's API server.
	ViaHub Path = "hub"
	// ViaPort is directly to the gateway's port for agents.
	ViaPort Path = "port"
	// ViaKonnectivity is through the Konnectivity protocol; see package konnectivity.
	ViaKonnectivity Path = "konnectivity"
)

// State is the state of the agent's tunnel.
type State struct {
	Connected bool
	Path      Path
	// Reason is why it is not connected; nil while it is.
	Reason error
}

// Connector is the agent's side. It keeps one or several sessions to the hub and serves the streams
// that the gateway opens in them. When a gateway asks it to reconnect, it keeps the old session
// until the new one is established and the streams of the old one have ended. Fill in the fields,
// then call Run once.
type Connector struct {
	// Member is this member's name, for logs and profiles.
	Member string
	// Dial opens a connection on which the gateway starts a session; see [HubDialer].
	Dial func(ctx context.Context) (net.Conn, error)
	// Direct opens a connection to the port that a gateway has announced. If that works, the
	// session moves there. Otherwise it stays on the connection from Dial. If nil, it always stays.
	Direct func(ctx context.Context, port PortInfo) (net.Conn, error)
	// Data opens a data connection with a nonce at the port where a session is; see
	// [HubDialer.DialData]. If nil, there are none.
	Data func(ctx context.Context, port PortInfo, nonce string) (*net.TCPConn, error)
	// Targets is everything that a gateway can reach here, by name.
	Targets map[string]Target
	// OnStateChange receives every new session, and every failed attempt while there is none, in
	// order. While a session is being replaced, the agent counts as connected. It must not block.
	// Optional.
	OnStateChange func(State)
	// Sessions is the number of gateways of a hub to which the agent keeps a session, if there are
	// as many; 0 is 1. All sessions are served.
	Sessions int
	// MaxStreams limits the streams of a session; 0 is 4096.
	MaxStreams int
	// DialTimeout limits one attempt to connect; 0 is 30 s.
	DialTimeout time.Duration
	// DrainTimeout is how long streams may continue after Run's context has ended. The gateway is
	// asked to open no more. 0 ends them at once.
	DrainTimeout time.Duration
	// Unread limits the unread bytes of all streams together; 0 is 256 MiB. Beyond it, streams with
	// much unread data are reset.
	Unread int64
	// Clock and Random (in [0,1)) decide the waits between attempts. If unset, they are the real
	// ones.
	Clock  clock.Clock
	Random func() float64

	newMultiplexer multiplexerFunc
}

// Run keeps sessions until ctx ends, and reconnects with a delay whenever one is lost. It returns
// nil when ctx and all streams have ended. If a field is invalid it returns an error at once.
func (c *Connector) Run(ctx context.Context) error {
	run, err := c.withDefaults()
	if err != nil {
		return err
	}
	pprof.Do(ctx, pprof.Labels("tunnel", "agent", "member", c.Member), func(ctx context.Context) {
		known, states := newReplicas(run.Sessions), &states{report: run.OnStateChange, byIndex: map[int]State{}}
		var loops sync.WaitGroup
		for i := range run.Sessions {
			s := &sessionLoop{Connector: run, index: i, replicas: known, states: states}
			loops.Go(func() { s.run(ctx) })
		}
		loops.Wait()
	})
	return nil
}

// withDefaults returns a copy with defaults, or an error if a field is invalid.
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
	if run.newMultiplexer == nil {
		run.newMultiplexer = nativeMultiplexer(native.Agent, run.MaxStreams, budget.New(run.Unread))
	}
	return &run, nil
}
