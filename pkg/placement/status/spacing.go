// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

const (
	// hastyMembers is up to how many members a placement's news are written as soon as
	// they come.
	hastyMembers = 200
	// stride is how far apart other writes of a status are: during a rollout every member
	// changes it several times.
	stride = time.Second
)

// spacing remembers when the statuses of placements were written.
type spacing struct {
	mu    sync.Mutex
	wrote map[types.NamespacedName]lastWrite
}

type lastWrite struct {
	at    time.Time
	large bool
}

// wait is for how long the status of a placement has to wait.
func (p *spacing) wait(placement types.NamespacedName, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.wrote[placement]
	if !ok {
		return 0
	}
	return max(0, last.at.Add(stride).Sub(now))
}

// isLarge reports whether the status that was written last was of many members: each
// write is large, and so is the work of computing it.
func (p *spacing) isLarge(placement types.NamespacedName) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wrote[placement].large
}

// writes notes that the status of a placement is written.
func (p *spacing) writes(placement types.NamespacedName, members int, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wrote == nil {
		p.wrote = map[types.NamespacedName]lastWrite{}
	}
	p.wrote[placement] = lastWrite{at: now, large: members > hastyMembers}
}

// forget says that a placement is gone.
func (p *spacing) forget(placement types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.wrote, placement)
}

// isNews reports whether a status tells what people wait for: where the resources go, or
// that all is done. What comes between is gathered.
func isNews(placement placementv1beta1.PlacementObject, status *placementv1beta1.PlacementStatus) bool {
	stages := stagesOf(placement.GetSpec())
	return differs(placement, status, placementv1beta1.ConditionScheduled) ||
		differs(placement, status, stages[len(stages)-1].kind) &&
			meta.IsStatusConditionTrue(status.Conditions, placement.ConditionType(stages[len(stages)-1].kind))
}

// differs reports whether a condition of the placement says something else than before.
func differs(placement placementv1beta1.PlacementObject, status *placementv1beta1.PlacementStatus, kind string) bool {
	before := meta.FindStatusCondition(placement.GetStatus().Conditions, placement.ConditionType(kind))
	after := meta.FindStatusCondition(status.Conditions, placement.ConditionType(kind))
	if before == nil || after == nil {
		return before != after
	}
	return before.Status != after.Status || before.Reason != after.Reason || before.ObservedGeneration != after.ObservedGeneration
}
