// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

const (
	// inFlightDelay delays a binding status that would only say that Works are in flight. Most members
	// report earlier, and then one write is enough instead of two. Statuses that people wait for still
	// appear within two seconds.
	inFlightDelay = 1500 * time.Millisecond
	// inFlightShare is the delay for each binding in flight, and longestInFlightDelay its maximum. While
	// many are, the hub is busy with them: members report later, and each further write delays them more.
	// It is as long as the interval at which a placement's status reports the progress of its members.
	inFlightShare        = 30 * time.Millisecond
	longestInFlightDelay = 30 * time.Second
)

// inFlight stores since when the Works of bindings are in flight without a report. It is empty after a
// start.
type inFlight struct {
	mu    sync.Mutex
	since map[types.NamespacedName]time.Time
}

// wait is the remaining delay of a status that only reports Works in flight.
func (u *inFlight) wait(binding types.NamespacedName, now time.Time) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	since, ok := u.since[binding]
	if !ok {
		if u.since == nil {
			u.since = map[types.NamespacedName]time.Time{}
		}
		u.since[binding], since = now, now
	}
	return max(0, since.Add(delayOf(len(u.since))).Sub(now))
}

// delayOf is the delay while this number of bindings is in flight.
func delayOf(bindings int) time.Duration {
	return max(inFlightDelay, min(longestInFlightDelay, time.Duration(bindings)*inFlightShare))
}

// forget removes a binding whose status was reported, or that no longer exists.
func (u *inFlight) forget(binding types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.since, binding)
}

// isInFlight reports whether a status only says that members have not reported yet for the current
// spec.
func isInFlight(status *placementv1beta1.ResourceBindingStatus, generation int64) bool {
	for kind, reason := range map[string]string{
		placementv1beta1.ConditionApplied:      placementv1beta1.ReasonApplyInProgress,
		placementv1beta1.ConditionDiffReported: placementv1beta1.ReasonDiffReportInProgress,
	} {
		c := meta.FindStatusCondition(status.Conditions, kind)
		if c != nil && c.ObservedGeneration == generation && c.Status == metav1.ConditionFalse && c.Reason == reason {
			return true
		}
	}
	return false
}
