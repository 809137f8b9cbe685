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
	// retainedSettles is how long the retained objects must not change before they are reported
	// ahead of the next heartbeat.
	retainedSettles = 2 * time.Second
	// retainedUnknown is how long after a start the agent does not report that it retains nothing:
	// it processes all Works first.
	retainedUnknown = time.Minute
)

// Retained reports the objects that the member retains since the hub was restored to an earlier
// state. Call Set when they change, from any goroutine.
type Retained struct {
	member  string
	clock   clock.WithDelayedExecution
	changed wakes

	// mu guards the fields below it.
	mu sync.Mutex
	// shown is nil until the agent has processed all Works.
	shown *retention.Summary
	timer clock.Timer
}

// NewRetained returns a Retained that reports nothing yet.
func NewRetained(member string, clock clock.WithDelayedExecution) *Retained {
	r := &Retained{member: member, clock: clock, changed: make(wakes, 1)}
	r.timer = clock.AfterFunc(retainedUnknown, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.shown == nil {
			r.shown = &retention.Summary{}
			r.changed.wake()
		}
	})
	return r
}

// Set replaces the retained objects.
func (r *Retained) Set(sum retention.Summary) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown = &sum
	r.timer.Stop()
	r.timer = r.clock.AfterFunc(retainedSettles, r.changed.wake)
}

// condition is the condition to report, or nil. released is the value of
// AnnotationRelease.
func (r *Retained) condition(released string) *metav1.Condition {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shown == nil {
		return nil
	}
	return retainedCondition(r.member, *r.shown, released)
}

func retainedCondition(member string, retained retention.Summary, released string) *metav1.Condition {
	if retained.Objects == 0 {
		return &metav1.Condition{Type: clusterv1beta1.ConditionPlacementsRetained, Status: metav1.ConditionFalse,
			Reason: clusterv1beta1.ReasonNothingRetained, Message: "the hub knows all objects that were placed on the member"}
	}
	reason, why := clusterv1beta1.ReasonHubRestored, "the hub was restored to an earlier state, or is another hub"
	if !retained.HubRestored {
		reason, why = clusterv1beta1.ReasonWorkReplaced, "Works replaced others of the same name"
	}
	message := fmt.Sprintf("%s: the member retains %d objects of %d %s, one of them %q, that the hub does not know. "+
		"Place them again, or release them: kubectl annotate membercluster %s --overwrite %s=%s",
		why, retained.Objects, retained.Works, retained.Kinds, retained.Example, member, clusterv1beta1.AnnotationRelease, retained.IDs)
	if released != "" && !namesAny(released, retained.IDs) {
		// The value itself can be as long as the fleet is large.
		message += " (its present value contains none of these ids)"
	}
	return &metav1.Condition{Type: clusterv1beta1.ConditionPlacementsRetained, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

// namesAny reports whether two lists of ids have one in common.
func namesAny(a, b string) bool {
	return sets.New(strings.Split(a, ",")...).HasAny(strings.Split(b, ",")...)
}
