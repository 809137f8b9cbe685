// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"sync"
	"time"
)

// linger is how long a tunnel on the previous path to the hub continues, until the tunnel on the
// new path is up. Requests for the member use either of them.
const linger = 10 * time.Second

// tunnels are the tunnels on the current path to the hub, and on paths that were left less than
// linger ago.
type tunnels struct{ running sync.WaitGroup }

// serve runs a tunnel until ctx ends. If ctx ends because the path was left, the tunnel lingers.
// ctx belongs to the path, life to the agent.
func (t *tunnels) serve(ctx, life context.Context, left <-chan struct{}, run func(context.Context) error) error {
	own, end := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	t.running.Go(func() {
		defer end()
		ended <- run(own)
	})
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case <-left:
	default:
		end()
		return <-ended
	}
	t.running.Go(func() {
		defer end()
		select {
		case <-own.Done():
		case <-life.Done():
		case <-time.After(linger):
		}
	})
	return nil
}

// wait returns when all tunnels have ended.
func (t *tunnels) wait() { t.running.Wait() }
