// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestTunnels_LingerOnlyAfterPathIsLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		left, dies bool
		want       time.Duration
	}{
		"the path is left":                    {left: true, want: linger},
		"the agent ends while one lingers":    {left: true, dies: true, want: time.Second},
		"the hub has no place for the member": {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				life, die := context.WithCancel(t.Context())
				defer die()
				ctx, end := context.WithCancel(life)
				left := make(chan struct{})
				var all tunnels
				time.AfterFunc(time.Minute, func() {
					if tc.left {
						close(left)
					}
					end()
				})
				if tc.dies {
					time.AfterFunc(time.Minute+time.Second, die)
				}
				if err := all.serve(ctx, life, left, func(ctx context.Context) error {
					<-ctx.Done()
					return nil
				}); err != nil {
					t.Error(err)
				}
				began := time.Now()
				all.wait()
				if got := time.Since(began); got != tc.want {
					t.Errorf("the tunnel lasted %s after the path was left, want %s", got, tc.want)
				}
			})
		})
	}
}

func TestTunnels_ReturnErrorOfEndedTunnel(t *testing.T) {
	broken := errors.New("broken")
	var all tunnels
	if err := all.serve(t.Context(), t.Context(), nil, func(context.Context) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("it ended with %v", err)
	}
	all.wait()
}
