// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/problems"
)

const (
	// stuckAfter is how long a rollout can wait for one member before an event is sent; update runs use
	// the same duration.
	stuckAfter = 5 * time.Minute

	rolloutStuck = "PlacementRolloutStuck"
)

// hold is a member that blocks others.
type hold struct {
	member string
	since  time.Time
	// why is the message about it.
	why string
}

// holdUp is the member that has blocked others longest, nil if there is none. It is nil under an
// external rollout, where update runs report their own state.
func holdUp(placement placementv1beta1.PlacementObject) *hold {
	if placement.GetSpec().Strategy.Type == placementv1beta1.ExternalStrategy {
		return nil
	}
	var longest *hold
	waits := false
	members := placement.GetStatus().PlacementStatuses
	for i := range members {
		if meta.IsStatusConditionFalse(members[i].Conditions, rolloutStarted.kind) {
			waits = true
			continue
		}
		c := notTrue(&members[i])
		if c == nil || !meta.IsStatusConditionTrue(members[i].Conditions, rolloutStarted.kind) {
			continue
		}
		if longest == nil || c.LastTransitionTime.Time.Before(longest.since) {
			longest = &hold{member: members[i].ClusterName, since: c.LastTransitionTime.Time, why: problems.OfMember(&members[i], c).String()}
		}
	}
	if !waits {
		return nil
	}
	return longest
}

// standstills stores which hold of a placement was reported, so that it is reported once. After a start
// it is reported again.
type standstills struct {
	mu       sync.Mutex
	reported map[types.NamespacedName]hold
}

// check returns the event for a placement, or nil, and the time until the next check, or zero.
func (s *standstills) check(key types.NamespacedName, placement placementv1beta1.PlacementObject, now time.Time) (*statusEvent, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := holdUp(placement)
	if found == nil {
		delete(s.reported, key)
		return nil, 0
	}
	if left := found.since.Add(stuckAfter).Sub(now); left > 0 {
		return nil, left
	}
	if last, ok := s.reported[key]; ok && last.member == found.member && last.since.Equal(found.since) {
		return nil, 0
	}
	if s.reported == nil {
		s.reported = map[types.NamespacedName]hold{}
	}
	s.reported[key] = *found
	return &statusEvent{corev1.EventTypeWarning, rolloutStuck,
		fmt.Sprintf("Other members have waited for longer than %s: %s", stuckAfter, found.why)}, 0
}

// forget removes a deleted placement.
func (s *standstills) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.reported, key)
}
