// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"testing"
	"time"
)

func TestReconnectDelay(t *testing.T) {
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
			if got := reconnectDelay(c.failures, c.random).Round(10 * time.Millisecond); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
