// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
)

// linger is how long a tunnel to the previous address of the hub continues, until the tunnel to the new
// address is up. Requests for the member use either of them.
const linger = 10 * time.Second

// hubConnection is the agent's connection to one address of the hub.
type hubConnection struct {
	// tunnels are the tunnels of all connections.
	tunnels *sync.WaitGroup
	// shutdown is closed when the agent stops.
	shutdown <-chan struct{}

	mu    sync.Mutex
	state connectionState
}

// connectionState is the state of a hubConnection.
type connectionState string

const (
	connecting connectionState = "Connecting" // The agent waits until the hub admits the member.
	connected  connectionState = "Connected"  // The agent serves the hub.
	lingering  connectionState = "Lingering"  // The hub has moved, and only the tunnel continues.
	stopped    connectionState = "Stopped"    // Nothing follows.
)

// connectionEvent changes the state of a hubConnection.
type connectionEvent string

const (
	admitted  connectionEvent = "Admitted"  // The hub has a MemberCluster for the agent.
	dismissed connectionEvent = "Dismissed" // The hub removed the MemberCluster, or was restored.
	moved     connectionEvent = "Moved"     // The hub has another address.
	ended     connectionEvent = "Ended"     // The agent stops or has failed, or the tunnel has lingered long enough.
)

// after returns the state that follows an event.
func (s connectionState) after(event connectionEvent) connectionState {
	switch {
	case event == ended:
		return stopped
	case event == moved && s == connected:
		return lingering
	case event == moved && s == connecting:
		return stopped
	case event == admitted && s == connecting:
		return connected
	case event == dismissed && s == connected:
		return connecting
	}
	return s
}

func (c *hubConnection) apply(event connectionEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = c.state.after(event)
}

func (c *hubConnection) current() connectionState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// serveHub serves the hub, on one connection for each address, until the context ends.
func (a *agent) serveHub(ctx context.Context) error {
	member, err := a.enroller.Member(ctx)
	if err != nil {
		return ignoreEnd(ctx, err)
	}
	var tunnels sync.WaitGroup
	defer tunnels.Wait()
	for ctx.Err() == nil {
		if err := a.serveAddress(ctx, member, &hubConnection{tunnels: &tunnels, shutdown: ctx.Done(), state: connecting}); err != nil {
			return err
		}
	}
	return nil
}

// serveAddress serves the hub until its address changes: while the hub admits this member, and again
// after it readmits the member.
func (a *agent) serveAddress(ctx context.Context, member string, connection *hubConnection) error {
	left := a.enroller.Moved()
	hub, err := a.enroller.HubConfig(ctx)
	if err != nil {
		return ignoreEnd(ctx, err)
	}
	admission, err := enroll.NewAdmission(member, hub, a.enroller.Ready, clock.RealClock{})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	ctx, end := context.WithCancel(ctx)
	defer end()
	group.Go(func() error {
		defer end()
		event := ended
		select {
		case <-left:
			event = moved
		case <-ctx.Done():
		}
		connection.apply(event) // Before the context ends, because keepTunnel reads the state then.
		return nil
	})
	group.Go(func() error {
		defer end()
		for {
			if err := admission.Await(ctx); err != nil {
				return ignoreEnd(ctx, err)
			}
			connection.apply(admitted)
			if err := a.serveMember(ctx, hub, member, admission, connection); err != nil {
				return err
			}
			connection.apply(dismissed)
		}
	})
	return group.Wait()
}

// keepTunnel runs a tunnel until the context ends and, if the connection is lingering then, for linger
// longer.
func (c *hubConnection) keepTunnel(ctx context.Context, run func(context.Context) error) error {
	own, end := context.WithCancel(context.WithoutCancel(ctx))
	result := make(chan error, 1)
	c.tunnels.Go(func() {
		defer end()
		result <- run(own)
	})
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
	}
	if c.current() != lingering {
		end()
		return <-result
	}
	c.tunnels.Go(func() {
		defer end()
		select {
		case <-own.Done():
		case <-c.shutdown:
		case <-time.After(linger):
		}
		c.apply(ended)
	})
	return nil
}
