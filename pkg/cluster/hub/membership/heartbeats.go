// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/clock"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// beat has the two times that an agent writes, by its own clock. They are only compared with earlier
// ones of the same agent, because its clock may be wrong by hours.
type beat struct{ report, lease time.Time }

func beatOf(imc *clusterv1beta1.InternalMemberCluster, lease *coordinationv1.Lease) beat {
	var b beat
	if agent := imc.Status.AgentStatusOf(clusterv1beta1.MemberAgent); agent != nil {
		b.report = agent.LastReceivedHeartbeat.Time
	}
	if lease != nil && lease.Spec.RenewTime != nil {
		b.lease = lease.Spec.RenewTime.Time
	}
	return b
}

// heartbeat is the last heartbeat of a member that the hub saw.
type heartbeat struct {
	beat beat
	// at is when the hub saw the beat, by the hub's clock. Initially it is the start of this gateway.
	at time.Time
	// heard is true once a beat arrived while this gateway was running.
	heard bool
}

// heartbeats are the hub's own observations. They are in memory: after a start, every member has the full
// time again before it counts as disconnected.
type heartbeats struct {
	// mu guards seen and shown.
	mu   sync.Mutex
	seen map[string]heartbeat
	// shown is the state of a member's agent from which its MemberCluster was last written.
	shown map[string]written
}

// written is a state that an agent wrote.
type written struct {
	// report is the resource version of the InternalMemberCluster.
	report string
	lease  time.Time
}

// observe records what a member's agent has written, and returns its last heartbeat.
func (p *heartbeats) observe(member string, b beat, clock clock.PassiveClock) heartbeat {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil {
		p.seen = map[string]heartbeat{}
	}
	known, ok := p.seen[member]
	if ok && known.beat.report.Equal(b.report) && known.beat.lease.Equal(b.lease) {
		return known
	}
	known = heartbeat{beat: b, at: clock.Now(), heard: ok}
	p.seen[member] = known
	return known
}

// changed reports what changed since show. Manual changes of a MemberCluster's status stay until its
// agent reports something new.
func (p *heartbeats) changed(member string, s written) (report, lease bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	shown, ok := p.shown[member]
	return !ok || shown.report != s.report, !ok || !shown.lease.Equal(s.lease)
}

// show records that the MemberCluster was written from that state.
func (p *heartbeats) show(member string, s written) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown == nil {
		p.shown = map[string]written{}
	}
	p.shown[member] = s
}

func (p *heartbeats) forget(member string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.seen, member)
	delete(p.shown, member)
}
