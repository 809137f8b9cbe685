// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// hastyMembers is up to how many members a status is written as soon as it
	// changes.
	hastyMembers = 200
	// slowPace is how far apart the writes are of a placement on more: each is large,
	// and during a rollout every member changes it several times.
	slowPace = time.Second
)

// pace remembers when the statuses of large placements were written.
type pace struct {
	mu    sync.Mutex
	wrote map[types.NamespacedName]time.Time
}

// wait is for how long the status of a placement has to wait. Only one that was large
// when it was written last does.
func (p *pace) wait(placement types.NamespacedName, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.wrote[placement]
	if !ok {
		return 0
	}
	return max(0, last.Add(slowPace).Sub(now))
}

// writes notes that the status of a placement is written.
func (p *pace) writes(placement types.NamespacedName, members int, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if members <= hastyMembers {
		delete(p.wrote, placement)
		return
	}
	if p.wrote == nil {
		p.wrote = map[types.NamespacedName]time.Time{}
	}
	p.wrote[placement] = now
}

// forget says that a placement is gone.
func (p *pace) forget(placement types.NamespacedName) { p.writes(placement, 0, time.Time{}) }
