// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/klog/v2"
)

const (
	// balanceInterval is the mean time between two comparisons with the other gateways.
	balanceInterval = 10 * time.Second
	// balanceSettles is how long a gateway must be linked before its sessions are compared.
	balanceSettles = 30 * time.Second
	// balanceTenth is the tolerated difference as a part of the mean. Agents reach random gateways,
	// so small differences always exist.
	balanceTenth = 10
	// balanceStep is the part of its sessions that a gateway asks to move at a time. With ten seconds
	// in between, half of the sessions of a gateway move in two minutes.
	balanceStep = 20
	// balancePatience is how long an agent that was asked to move counts as on its way. After that it
	// is asked again.
	balancePatience = 5 * time.Minute
)

// surplusOf is how many of its sessions a gateway should move if the others have so many. It is 0
// unless the difference to the gateway with the fewest is significant, so nothing moves while nothing
// changes. All gateways together move as many as are missing elsewhere.
func surplusOf(own int, others []int) int {
	lowest, total := own, own
	for _, n := range others {
		lowest, total = min(lowest, n), total+n
	}
	mean := total / (len(others) + 1)
	if own-lowest < 2+mean/balanceTenth {
		return 0
	}
	return max(own-mean, 0)
}

// stepOf is how many sessions move at a time.
func stepOf(own, surplus int) int { return min(surplus, max(own/balanceStep, 1)) }

// surplus is how many sessions this gateway should ask to move, besides those that it has asked.
func (r *Registry) surplus(now time.Time) int {
	others, known := r.loads()
	if !known || len(others) == 0 {
		return 0
	}
	own := 0
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, sessions := range r.members {
		if slices.ContainsFunc(sessions, func(s *session) bool { return !s.retired && !s.isMoving(now) }) {
			own++
		}
	}
	return surplusOf(own, others)
}

// isMoving is true for a while after the agent was asked to move the session.
func (s *session) isMoving(now time.Time) bool {
	return !s.asked.IsZero() && now.Sub(s.asked) < balancePatience
}

// keepBalanced moves sessions to gateways that have fewer, until ctx ends. It acts only on a surplus
// that it finds twice in a row: a gateway that stops has no sessions before it is known to stop.
func (r *Registry) keepBalanced(ctx context.Context) {
	before := false
	for {
		timer := time.NewTimer(time.Duration((0.8 + 0.4*rand.Float64()) * float64(balanceInterval)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		surplus := r.surplus(time.Now())
		r.full.Store(surplus > 0)
		if surplus > 0 && before {
			asked := r.askToMove(time.Now(), surplus)
			klog.FromContext(ctx).V(1).Info("Asked agents to move their tunnels to replicas with fewer", "sessions", asked, "surplus", surplus)
		}
		before = surplus > 0
	}
}

// askToMove asks the agents of some sessions to open another one in place of it, and returns how many.
// Nothing is cut: an agent keeps the session until the other one is established, and its streams
// continue. Sessions with few streams move first.
func (r *Registry) askToMove(now time.Time, surplus int) int {
	var movable []*session
	r.mu.Lock()
	if !r.closed {
		for _, sessions := range r.members {
			// Agents of other protocols choose their gateways on their own.
			if _, own := sessions[0].Session.(*nativeSession); own && !sessions[0].retired && !sessions[0].isMoving(now) {
				movable = append(movable, sessions[0])
			}
		}
	}
	slices.SortFunc(movable, func(a, b *session) int { return cmp.Compare(a.open.Load(), b.open.Load()) })
	movable = movable[:min(len(movable), stepOf(len(r.members), surplus))]
	for _, s := range movable {
		s.asked = now
	}
	r.mu.Unlock()
	for _, s := range movable {
		s.Drain()
	}
	r.metrics.moves.Add(float64(len(movable)))
	return len(movable)
}
