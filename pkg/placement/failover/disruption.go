// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"
	"sync"
	"time"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

const (
	// disruptedPercent is the share of unreachable members at which the hub itself counts as
	// disconnected. Kubernetes uses 55 % of a zone's nodes.
	disruptedPercent = 55
	// disruptedLeast is the minimum number of unreachable members: of two members one can be the failed
	// one, and of three two.
	disruptedLeast = 2
	// evictionInterval is the minimum interval between evictions of all placements. With half an
	// eviction a second, people can see them and pause before a whole fleet has moved.
	evictionInterval = 2 * time.Second
	// taintGrace is how long after a disruption the taint of unreachable members does not count.
	taintGrace = 5 * time.Minute
)

// census counts the members that have reported.
type census struct{ heard, unreachable int }

func censusOf(members []clusterv1beta1.MemberCluster) census {
	var c census
	for i := range members {
		member := &members[i]
		if member.DeletionTimestamp != nil || member.Status.AgentStatusOf(clusterv1beta1.MemberAgent) == nil {
			continue
		}
		if _, silent := member.SilentSince(); silent {
			c.unreachable++
		} else {
			c.heard++
		}
	}
	return c
}

// disrupted reports whether so many members are unreachable that the hub or its network has probably
// failed. Then the state of all members is unknown.
func (c census) disrupted() bool {
	return c.unreachable >= disruptedLeast && c.unreachable*100 >= disruptedPercent*(c.heard+c.unreachable)
}

// why is the message for the placement.
func (c census) why() string {
	return fmt.Sprintf("Nothing is evicted while most members are unreachable (%d of %d): the hub may have lost its connection. Evictions resume when fewer than %d %% are, and the time of silence counts from then",
		c.unreachable, c.heard+c.unreachable, disruptedPercent)
}

// watch is the state of the fleet and the evictions, shared by all placements.
type watch struct {
	mu sync.Mutex // Guards the fields below.
	// disrupted is true while most members are unreachable; ended is the end of the last disruption.
	disrupted bool
	ended     time.Time
	// next is the earliest time of the next eviction.
	next time.Time
}

// see records the number of unreachable members, and returns since when missing heartbeats count.
func (w *watch) see(c census, now time.Time) (since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if was := w.disrupted; was && !c.disrupted() {
		w.ended = now
	}
	w.disrupted = c.disrupted()
	return w.ended
}

// reserve reserves the turn of an eviction, or returns how long it has to wait.
func (w *watch) reserve(now time.Time) (wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if wait = w.next.Sub(now); wait > 0 {
		return wait
	}
	w.next = now.Add(evictionInterval)
	return 0
}
