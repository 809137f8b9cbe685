// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

const (
	// heldSettles is how long what is held has to last until it is reported before its turn.
	heldSettles = 2 * time.Second
	// heldUnknown is for how long after a start nothing is said if nothing is found to be
	// held: all Works are looked at first.
	heldUnknown = time.Minute
)

// Held is what there is to report about objects that are held on the member since the hub
// went back to an earlier state. Set it as that changes, from any goroutine.
type Held struct {
	member  string
	clock   clock.WithDelayedExecution
	changed wakes

	// mu guards the fields below it.
	mu sync.Mutex
	// shown is nil until something is known.
	shown *metav1.Condition
	timer clock.Timer
}

// NewHeld returns one of which nothing is known yet.
func NewHeld(member string, clock clock.WithDelayedExecution) *Held {
	h := &Held{member: member, clock: clock, changed: make(wakes, 1)}
	h.timer = clock.AfterFunc(heldUnknown, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.shown == nil {
			h.shown = heldCondition(member, 0, 0, "")
			h.changed.wake()
		}
	})
	return h
}

// Set says of how many Works how many objects are held; example is the name of one of them.
func (h *Held) Set(works, objects int, example string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shown = heldCondition(h.member, works, objects, example)
	h.timer.Stop()
	h.timer = h.clock.AfterFunc(heldSettles, h.changed.wake)
}

func heldCondition(member string, works, objects int, example string) *metav1.Condition {
	if objects == 0 {
		return &metav1.Condition{Type: clusterv1beta1.ConditionPlacementsHeld, Status: metav1.ConditionFalse,
			Reason: clusterv1beta1.ReasonNothingHeld, Message: "all that was placed on the member is known to the hub"}
	}
	return &metav1.Condition{
		Type: clusterv1beta1.ConditionPlacementsHeld, Status: metav1.ConditionTrue, Reason: clusterv1beta1.ReasonHubWentBack,
		Message: fmt.Sprintf("the hub went back to an earlier state: %d objects of %d Works, one of them %q, are on the member and the hub does not know of them; "+
			"they stay. Place them again, or let them go: kubectl annotate membercluster %s --overwrite %s=$(date -u +%%FT%%TZ)",
			objects, works, example, member, clusterv1beta1.AnnotationLetGo),
	}
}

// condition is what to report beside what was reported before, or nil.
func (h *Held) condition() *metav1.Condition {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.shown.DeepCopy()
}
