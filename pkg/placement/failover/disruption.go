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
	// disruptedPercent is the share of unreachable members at which the hub is taken for the one
	// that lost its connection, as Kubernetes takes 55 % of a zone's nodes.
	disruptedPercent = 55
	// disruptedLeast is how many members have to be unreachable at least: of two members one may
	// be the culprit, and of three two.
	disruptedLeast = 2
	// evictionInterval is how long after an eviction the next one follows, of all placements: half
	// an eviction a second, so that people see it and can pause before a fleet has moved.
	evictionInterval = 2 * time.Second
	// taintGrace is for how long after a disruption the taint of unreachable members does not count.
	taintGrace = 5 * time.Minute
)

// census counts the members of which the hub has heard.
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

// disrupted reports whether so many members are unreachable that it is rather the hub, or the way
// to it, that has failed: then nothing is known of any of them.
func (c census) disrupted() bool {
	return c.unreachable >= disruptedLeast && c.unreachable*100 >= disruptedPercent*(c.heard+c.unreachable)
}

// why is a sentence for the placement.
func (c census) why() string {
	return fmt.Sprintf("Nothing is evicted while most members are unreachable (%d of %d): the hub may have lost its connection. Evictions resume when fewer than %d %% are, and the time of silence counts from then",
		c.unreachable, c.heard+c.unreachable, disruptedPercent)
}

// watch knows what all placements together have seen of the fleet and have evicted.
type watch struct {
	mu sync.Mutex // guards what follows
	// disrupted is set while most members are unreachable, ended is when that was over last.
	disrupted bool
	ended     time.Time
	// next is when the next eviction may follow.
	next time.Time
}

// see takes up how many members are unreachable, and returns since when silence counts.
func (w *watch) see(c census, now time.Time) (since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if was := w.disrupted; was && !c.disrupted() {
		w.ended = now
	}
	w.disrupted = c.disrupted()
	return w.ended
}

// turn takes the turn of an eviction, or says how long it has to wait.
func (w *watch) turn(now time.Time) (wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if wait = w.next.Sub(now); wait > 0 {
		return wait
	}
	w.next = now.Add(evictionInterval)
	return 0
}
