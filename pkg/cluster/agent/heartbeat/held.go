// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/retention"
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
	shown *retention.Sum
	timer clock.Timer
}

// NewHeld returns one of which nothing is known yet.
func NewHeld(member string, clock clock.WithDelayedExecution) *Held {
	h := &Held{member: member, clock: clock, changed: make(wakes, 1)}
	h.timer = clock.AfterFunc(heldUnknown, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.shown == nil {
			h.shown = &retention.Sum{}
			h.changed.wake()
		}
	})
	return h
}

// Set says what is held.
func (h *Held) Set(sum retention.Sum) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shown = &sum
	h.timer.Stop()
	h.timer = h.clock.AfterFunc(heldSettles, h.changed.wake)
}

// condition is what to report beside what was reported before, or nil. released is the value of
// AnnotationRelease.
func (h *Held) condition(released string) *metav1.Condition {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shown == nil {
		return nil
	}
	return heldCondition(h.member, *h.shown, released)
}

func heldCondition(member string, held retention.Sum, released string) *metav1.Condition {
	if held.Objects == 0 {
		return &metav1.Condition{Type: clusterv1beta1.ConditionPlacementsHeld, Status: metav1.ConditionFalse,
			Reason: clusterv1beta1.ReasonNothingHeld, Message: "all that was placed on the member is known to the hub"}
	}
	reason, why := clusterv1beta1.ReasonHubWentBack, "the hub went back to an earlier state, or is another one"
	if !held.WentBack {
		reason, why = clusterv1beta1.ReasonAnotherWork, "other Works have come in the place of those that were here before"
	}
	message := fmt.Sprintf("%s: %d objects of %d %s, one of them %q, are on the member and the hub does not know of them; "+
		"they stay. Place them again, or release them: kubectl annotate membercluster %s --overwrite %s=%s",
		why, held.Objects, held.Works, held.Kinds, held.Example, member, clusterv1beta1.AnnotationRelease, held.IDs)
	if released != "" && !namesAny(released, held.IDs) {
		// The value itself can be as long as the fleet is large.
		message += " (the value that it has now names nothing of this)"
	}
	return &metav1.Condition{Type: clusterv1beta1.ConditionPlacementsHeld, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

// namesAny reports whether two lists of ids have one in common.
func namesAny(a, b string) bool {
	return sets.New(strings.Split(a, ",")...).HasAny(strings.Split(b, ",")...)
}
