// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// Callers choose the length of keys: their groups, paths and selectors are part of them.
func TestResultCache_KeepsNoKeyOfCallers(t *testing.T) {
	const limit = 64
	c := newResultCache[int](8)
	long := strings.Repeat("x", 1<<20)
	for i := range 4 {
		result := func(context.Context) (int, error) { return i, nil }
		for range 2 {
			got, err := c.within(t.Context(), fmt.Sprint(long, i), time.Minute, func(int) time.Duration { return time.Minute }, result)
			if err != nil || got != i {
				t.Errorf("got %d, %v, want %d", got, err, i)
			}
		}
	}
	keys := c.known.Load().Keys()
	for _, key := range keys {
		if size := len(fmt.Sprint(key)); size > limit {
			t.Errorf("a key of %d bytes is kept", size)
		}
	}
	if len(keys) != 4 {
		t.Errorf("%d results are kept, want 4", len(keys))
	}
}
