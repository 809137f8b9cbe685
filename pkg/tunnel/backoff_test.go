// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"fleetgate.io/fleetgate/pkg/tunnel/native"
)

func TestReconnectDelay_GrowsToTheCeiling(t *testing.T) {
	const almostOne = 0.999999
	for name, c := range map[string]struct {
		failures int
		random   float64
		want     time.Duration
	}{
		"never under the floor":             {1, 0, 200 * time.Millisecond},
		"the first spreads over a second":   {1, almostOne, time.Second},
		"the top doubles":                   {2, almostOne, 2 * time.Second},
		"and again":                         {4, almostOne, 8 * time.Second},
		"up to the ceiling":                 {6, almostOne, 30 * time.Second},
		"and no further":                    {1_000_000, almostOne, 30 * time.Second},
		"full jitter also after many":       {1_000_000, 0, 200 * time.Millisecond},
		"half of the way":                   {1, 0.5, 600 * time.Millisecond},
		"a count out of range is the first": {0, almostOne, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reconnectDelay(c.failures, reconnectFirst, c.random).Round(10 * time.Millisecond); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// Ten thousand agents reconnected within a second of their gateway, which could handle some hundred
// handshakes. The others timed out, used the hub instead, and reconnected from there again.
func TestReconnectFirst_GrowsWithTheFleet(t *testing.T) {
	lost := errors.New("the peer closed the connection")
	for name, c := range map[string]struct {
		members int
		ended   error
		want    time.Duration
	}{
		"nobody has told how many":     {0, lost, time.Second},
		"a few":                        {100, lost, time.Second},
		"a thousand":                   {1000, lost, 2 * time.Second},
		"ten thousand":                 {10_000, lost, 20 * time.Second},
		"more than there is time for":  {1 << 62, lost, 30 * time.Second},
		"fewer than none":              {-1, lost, time.Second},
		"one agent that heard nothing": {10_000, fmt.Errorf("the session: %w", native.ErrPeerSilent), time.Second},
	} {
		if got := reconnectFirstOf(c.members, c.ended); got != c.want {
			t.Errorf("%s: within %v, want %v", name, got, c.want)
		}
	}
}

// 10,000 agents that look for a gateway which is declared and unreachable must not keep the others
// busy with handshakes.
func TestSameReplicaDelay_GrowsWithFleet(t *testing.T) {
	for _, c := range []struct {
		met, members int
		longest      time.Duration
	}{{1, 10_000, time.Second}, {sameReplicaSearches, 10_000, 4 * time.Second}, {sameReplicaSearches + 1, 10, reconnectCeiling}, {100, 10_000, 400 * time.Second}} {
		if got := sameReplicaDelay(c.met, c.members, 1); got != c.longest {
			t.Errorf("after %d meetings in a fleet of %d members the longest wait is %v, want %v", c.met, c.members, got, c.longest)
		}
	}
}
