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
	// stuckAfter is how long a rollout may wait for one member until people are told, as long
	// as an update run may.
	stuckAfter = 5 * time.Minute

	rolloutStuck = "PlacementRolloutStuck"
)

// hold is a member that makes others wait.
type hold struct {
	member string
	since  time.Time
	// why is the sentence about it.
	why string
}

// holdUp is the member for which the others have waited longest, nil if nobody waits. Under
// an external rollout nobody does: update runs tell of themselves.
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

// standstills remembers of which hold of a placement people were told, so that they are told
// once. A gateway that starts tells again.
type standstills struct {
	mu   sync.Mutex
	told map[types.NamespacedName]hold
}

// look is what to tell of a placement, nil if there is nothing, and after what time to look
// again if nothing happens, zero if that is not needed.
func (s *standstills) look(key types.NamespacedName, placement placementv1beta1.PlacementObject, now time.Time) (*happened, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := holdUp(placement)
	if found == nil {
		delete(s.told, key)
		return nil, 0
	}
	if left := found.since.Add(stuckAfter).Sub(now); left > 0 {
		return nil, left
	}
	if told, ok := s.told[key]; ok && told.member == found.member && told.since.Equal(found.since) {
		return nil, 0
	}
	if s.told == nil {
		s.told = map[types.NamespacedName]hold{}
	}
	s.told[key] = *found
	return &happened{corev1.EventTypeWarning, rolloutStuck,
		fmt.Sprintf("Other members have waited for longer than %s: %s", stuckAfter, found.why)}, 0
}

// forget says that a placement is gone.
func (s *standstills) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.told, key)
}
