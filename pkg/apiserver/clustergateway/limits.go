// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import "sync"

// counter knows how many of something are under way for each name. Names without
// any are forgotten.
type counter struct {
	most int
	// mu guards the rest.
	mu      sync.Mutex
	present map[string]int
}

func newCounter(most int) *counter { return &counter{most: most, present: map[string]int{}} }

// begin reports whether there is room for one more, and counts it then.
func (c *counter) begin(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.present[name] >= c.most {
		return false
	}
	c.present[name]++
	return true
}

// end takes one back that begin counted.
func (c *counter) end(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.present[name]--; c.present[name] <= 0 {
		delete(c.present, name)
	}
}
