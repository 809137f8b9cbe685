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
	// hastyMembers is up to how many members a status is computed as soon as something
	// changes, which is cheap.
	hastyMembers = 200
	// stride is how far apart the writes of a status are, and computing one of many members:
	// during a rollout every member changes it several times.
	stride = time.Second
	// share is what each member adds to how far apart those writes of its placement's status
	// are that tell only how far single members are, and farthest is what they are apart at most.
	// A write costs the hub as much as there are members in it, 1 KB and about 1 ms of its CPU
	// time for each, and goes to all who watch: so what is told on the way takes some hundredths
	// of a core for each placement, however many members it has.
	share    = 30 * time.Millisecond
	farthest = 30 * time.Second
)

// spacing remembers when the statuses of placements were computed and written.
type spacing struct {
	mu   sync.Mutex
	last map[types.NamespacedName]occasion
}

// occasion is when a status was computed and written last, and of how many members.
type occasion struct {
	computed, written time.Time
	members           int
}

// compute is for how long computing the status of a placement has to wait.
func (p *spacing) compute(placement types.NamespacedName, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.last[placement]
	if last.members <= hastyMembers {
		return 0
	}
	return max(0, last.computed.Add(stride).Sub(now))
}

// write is for how long writing it has to wait.
func (p *spacing) write(placement types.NamespacedName, tells telling, now time.Time) time.Duration {
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

// computes notes that the status of a placement is computed.
func (p *spacing) computes(placement types.NamespacedName, members int, now time.Time) {
	p.note(placement, func(o *occasion) { o.computed, o.members = now, members })
}

// writes notes that it is written.
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

// forget says that a placement is gone.
func (p *spacing) forget(placement types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, placement)
}

// telling is how much a status says that was not said before.
type telling int

const (
	// details are how far single members are.
	details telling = iota
	// step is that the placement as a whole is at another stage than before.
	step
	// news is what people wait for: where the resources go, or that all is done; of many
	// members, whose details are written seldom, also how far it is and what is wrong.
	news
)

// tells finds out what a status tells.
func tells(placement placementv1beta1.PlacementObject, status *placementv1beta1.PlacementStatus) telling {
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

// differs reports whether a condition of the placement says something else than before.
func differs(placement placementv1beta1.PlacementObject, status *placementv1beta1.PlacementStatus, kind string) bool {
	before := meta.FindStatusCondition(placement.GetStatus().Conditions, placement.ConditionType(kind))
	after := meta.FindStatusCondition(status.Conditions, placement.ConditionType(kind))
	if before == nil || after == nil {
		return before != after
	}
	return before.Status != after.Status || before.Reason != after.Reason || before.ObservedGeneration != after.ObservedGeneration
}
