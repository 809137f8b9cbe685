// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"sync"
	"time"
)

// linger is for how long a tunnel goes on by a way to the hub that was left: until then the one
// by the next way is up. Requests for the member come by either.
const linger = 10 * time.Second

// tunnels are those of the present way to the hub, and of ways that were left a moment ago.
type tunnels struct{ running sync.WaitGroup }

// serve runs a tunnel until ctx ends, and lets it linger if that is since the way was left. ctx
// is of the way, life of the agent.
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

// wait returns when none runs any more.
func (t *tunnels) wait() { t.running.Wait() }
