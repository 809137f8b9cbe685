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

// beat are the two times that an agent writes, by its own clock. They are only compared
// with earlier ones of the same agent: its clock may be wrong by hours.
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

// pulse is when the hub last heard of a member.
type pulse struct {
	beat beat
	// at is when the hub saw the beat, by the hub's clock. At first sight that is only
	// when this gateway began to look.
	at time.Time
	// heard is true once a beat came while this gateway looked.
	heard bool
}

// pulses are the hub's own observations. They live in memory: a gateway that starts
// gives every member the whole time again before it calls one silent.
type pulses struct {
	// mu guards seen and shown.
	mu   sync.Mutex
	seen map[string]pulse
	// shown is what of a member's agent its MemberCluster was last written from.
	shown map[string]written
}

// written is one state of what an agent wrote.
type written struct {
	// report is the resource version of the InternalMemberCluster.
	report string
	lease  time.Time
}

// observe notes what a member's agent has written by now, and returns its pulse.
func (p *pulses) observe(member string, b beat, clock clock.PassiveClock) pulse {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil {
		p.seen = map[string]pulse{}
	}
	known, ok := p.seen[member]
	if ok && known.beat.report.Equal(b.report) && known.beat.lease.Equal(b.lease) {
		return known
	}
	known = pulse{beat: b, at: clock.Now(), heard: ok}
	p.seen[member] = known
	return known
}

// changed tells what of it is new since show: what people wrote into a
// MemberCluster's status stays until its agent says something new.
func (p *pulses) changed(member string, s written) (report, lease bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	shown, ok := p.shown[member]
	return !ok || shown.report != s.report, !ok || !shown.lease.Equal(s.lease)
}

// show notes that the MemberCluster was written from that.
func (p *pulses) show(member string, s written) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown == nil {
		p.shown = map[string]written{}
	}
	p.shown[member] = s
}

// forget drops what is known of a member that is gone.
func (p *pulses) forget(member string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.seen, member)
	delete(p.shown, member)
}
