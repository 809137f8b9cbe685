// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

const (
	// hastyMembers is the number of members up to which a status is computed on each change, because
	// that is cheap.
	hastyMembers = 200
	// stride is the minimum interval between writes of a status, and between computations for many
	// members: each member changes several times during a rollout.
	stride = time.Second
	// share is what each member adds to the interval between writes that only report the progress of
	// single members; farthest is the maximum of that interval. A write costs the hub about 1 KB and 1
	// ms of CPU time per member, and every watcher receives it. So the intermediate writes of a
	// placement cost some hundredths of a core, independent of the number of members.
	share    = 30 * time.Millisecond
	farthest = 30 * time.Second
)

// spacing stores when the statuses of placements were computed and written.
type spacing struct {
	mu   sync.Mutex
	last map[types.NamespacedName]occasion
}

// occasion is the last computation and write of a status, and its number of members.
type occasion struct {
	computed, written time.Time
	members           int
}

// compute returns how long the computation of a placement's status has to wait.
func (p *spacing) compute(placement types.NamespacedName, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.last[placement]
	if last.members <= hastyMembers {
		return 0
	}
	return max(0, last.computed.Add(stride).Sub(now))
}

// write returns how long its write has to wait.
func (p *spacing) write(placement types.NamespacedName, tells importance, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.last[placement]
	if !ok || last.written.IsZero() || tells == news {
		return 0
	}
	apart := stride
	if tells == details {
		apart = max(stride, min(farthest, time.Duration(last.members)*share))
	}
	return max(0, last.written.Add(apart).Sub(now))
}

// computes records a computation.
func (p *spacing) computes(placement types.NamespacedName, members int, now time.Time) {
	p.note(placement, func(o *occasion) { o.computed, o.members = now, members })
}

// writes records a write.
func (p *spacing) writes(placement types.NamespacedName, now time.Time) {
	p.note(placement, func(o *occasion) { o.written = now })
}

func (p *spacing) note(placement types.NamespacedName, change func(*occasion)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[types.NamespacedName]occasion{}
	}
	last := p.last[placement]
	change(&last)
	p.last[placement] = last
}

func (p *spacing) forget(placement types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, placement)
}

// importance is the importance of a changed status.
type importance int

const (
	// details are the progress of single members.
	details importance = iota
	// step means that the placement as a whole reached another stage.
	step
	// news is what people wait for: the selected members, or the completion. For many members, whose
	// details are written rarely, it includes the progress and problems of the placement.
	news
)

// importanceOf returns the importance of a status compared with the stored one.
func importanceOf(placement placementv1beta1.PlacementObject, status *placementv1beta1.PlacementStatus) importance {
	if differs(placement, status, placementv1beta1.ConditionScheduled) {
		return news
	}
	stages := stagesOf(placement.GetSpec())
	last := stages[len(stages)-1].kind
	if differs(placement, status, last) && meta.IsStatusConditionTrue(status.Conditions, placement.ConditionType(last)) {
		return news
	}
	if !slices.ContainsFunc(stages, func(s stage) bool { return differs(placement, status, s.kind) }) {
		return details
	}
	if len(status.PlacementStatuses) > hastyMembers {
		return news
	}
	return step
}

// differs reports whether a condition of the placement changed its status, reason or message.
func differs(placement placementv1beta1.PlacementObject, status *placementv1beta1.PlacementStatus, kind string) bool {
	before := meta.FindStatusCondition(placement.GetStatus().Conditions, placement.ConditionType(kind))
	after := meta.FindStatusCondition(status.Conditions, placement.ConditionType(kind))
	if before == nil || after == nil {
		return before != after
	}
	return before.Status != after.Status || before.Reason != after.Reason || before.ObservedGeneration != after.ObservedGeneration
}
