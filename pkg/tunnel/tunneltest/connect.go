// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tunneltest connects a gateway's registry and a member's agent within one process, for
// tests of packages that use tunnels. Both speak the real protocol; only the network between them
// is a pipe.
package tunneltest

import (
	"context"
	"net"
	"sync"
	"testing"

	"fleetgate.io/fleetgate/pkg/tunnel"
)

// Connect returns a registry to which the member is connected; its agent serves targets. The end of
// the test closes both and waits for them.
func Connect(t testing.TB, member string, targets map[string]tunnel.Target) *tunnel.Registry {
	t.Helper()
	registry := NewRegistry(t, tunnel.Options{})
	Join(t, registry, member, targets)
	return registry
}

// NewRegistry returns a registry without members, closed at the end of the test.
func NewRegistry(t testing.TB, o tunnel.Options) *tunnel.Registry {
	t.Helper()
	registry, err := tunnel.NewRegistry(o)
	if err != nil {
		t.Fatalf("making a registry: %v", err)
	}
	// With an ended context, Close waits for no stream.
	ended, end := context.WithCancel(t.Context())
	end()
	t.Cleanup(func() { _ = registry.Close(ended) })
	return registry
}

// Join connects one more member and waits until the registry knows it. leave stops its agent and
// returns when the registry has noticed; the end of the test does so too.
func Join(t testing.TB, registry *tunnel.Registry, member string, targets map[string]tunnel.Target) (leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	up := make(chan struct{})
	var once sync.Once
	unsubscribe := registry.Subscribe(func(name string, connected bool) {
		if name == member && connected {
			once.Do(func() { close(up) })
		}
	})
	defer unsubscribe()
	connector := &tunnel.Connector{Member: member, Targets: targets, Dial: func(context.Context) (net.Conn, error) {
		gateway, agent := net.Pipe()
		running.Go(func() { _ = registry.Serve(ctx, member, gateway) })
		return agent, nil
	}}
	ended := make(chan error, 1)
	running.Go(func() { ended <- connector.Run(ctx) })
	leave = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(leave)
	select {
	case <-up:
	case err := <-ended:
		t.Fatalf("running the agent of member %q: %v", member, err)
	}
	return leave
}
