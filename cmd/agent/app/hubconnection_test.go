// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestHubConnection_TunnelLingersOnlyAfterAMove(t *testing.T) {
	for name, tc := range map[string]struct {
		event connectionEvent
		dies  bool
		want  time.Duration
	}{
		"the hub moves":                     {event: moved, want: linger},
		"the agent stops while it lingers":  {event: moved, dies: true, want: time.Second},
		"the hub removes the MemberCluster": {event: dismissed},
		"the agent stops":                   {event: ended},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				life, die := context.WithCancel(t.Context())
				defer die()
				ctx, end := context.WithCancel(life)
				var tunnels sync.WaitGroup
				c := &hubConnection{tunnels: &tunnels, shutdown: life.Done(), state: connected}
				time.AfterFunc(time.Minute, func() {
					c.apply(tc.event)
					end()
				})
				if tc.dies {
					time.AfterFunc(time.Minute+time.Second, die)
				}
				if err := c.keepTunnel(ctx, func(ctx context.Context) error {
					<-ctx.Done()
					return nil
				}); err != nil {
					t.Error(err)
				}
				began := time.Now()
				tunnels.Wait()
				if got := time.Since(began); got != tc.want {
					t.Errorf("the tunnel continued for %s, want %s", got, tc.want)
				}
			})
		})
	}
}

func TestHubConnection_ReturnsErrorOfEndedTunnel(t *testing.T) {
	broken := errors.New("broken")
	c := &hubConnection{tunnels: &sync.WaitGroup{}, state: connected}
	if err := c.keepTunnel(t.Context(), func(context.Context) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("it ended with %v", err)
	}
	c.tunnels.Wait()
}

func TestConnectionState_After(t *testing.T) {
	for state, follows := range map[connectionState]map[connectionEvent]connectionState{
		connecting: {admitted: connected, dismissed: connecting, moved: stopped, ended: stopped},
		connected:  {admitted: connected, dismissed: connecting, moved: lingering, ended: stopped},
		lingering:  {admitted: lingering, dismissed: lingering, moved: lingering, ended: stopped},
		stopped:    {admitted: stopped, dismissed: stopped, moved: stopped, ended: stopped},
	} {
		for event, want := range follows {
			if got := state.after(event); got != want {
				t.Errorf("%s in state %s: got %s, want %s", event, state, got, want)
			}
		}
	}
}
