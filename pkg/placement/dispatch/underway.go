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

// journey is how long a binding's status waits that could only say that its Works are on
// their way: most members answer before, and then it is written once and not twice. What
// people wait for is told within two seconds all the same.
const journey = 1500 * time.Millisecond

// underway remembers since when the Works of bindings are on their way and nothing has
// been told of it. A gateway that starts begins anew.
type underway struct {
	mu    sync.Mutex
	since map[types.NamespacedName]time.Time
}

// wait is for how long a status that only says so has to wait yet.
func (u *underway) wait(binding types.NamespacedName, now time.Time) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	since, ok := u.since[binding]
	if !ok {
		if u.since == nil {
			u.since = map[types.NamespacedName]time.Time{}
		}
		u.since[binding], since = now, now
	}
	return max(0, since.Add(journey).Sub(now))
}

// told notes that the status of a binding says how its Works are, or is not wanted any more.
func (u *underway) told(binding types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.since, binding)
}

// isUnderway reports whether a status says of the present spec that members have not
// answered yet, and nothing worse.
func isUnderway(status *placementv1beta1.ResourceBindingStatus, generation int64) bool {
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
