// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

func TestSpacing_WritesOncePerSecond(t *testing.T) {
	key, now := types.NamespacedName{Name: "p"}, time.Unix(1000, 0)
	var p spacing
	p.computes(key, 20, now)
	if wait := p.write(key, details, now); wait != 0 {
		t.Errorf("the first write waits %s", wait)
	}
	p.writes(key, now)
	if wait := p.write(key, details, now.Add(300*time.Millisecond)); wait != 700*time.Millisecond {
		t.Errorf("the second write waits %s, want 700ms", wait)
	}
	if wait := p.write(types.NamespacedName{Name: "other"}, details, now); wait != 0 {
		t.Errorf("another placement waits %s", wait)
	}
	if wait := p.write(key, details, now.Add(stride)); wait != 0 {
		t.Errorf("after a second it waits %s", wait)
	}
	p.forget(key)
	if wait := p.write(key, details, now); wait != 0 || len(p.last) != 0 {
		t.Errorf("deleted placement is still stored: %v", p.last)
	}
}

func TestSpacing_IntervalGrowsWithMembers(t *testing.T) {
	key, now := types.NamespacedName{Name: "p"}, time.Unix(1000, 0)
	var p spacing
	for members, want := range map[int]time.Duration{20: stride, 100: 3 * time.Second, 1000: 30 * time.Second, 5000: farthest} {
		p.computes(key, members, now)
		p.writes(key, now)
		if wait := p.write(key, details, now); wait != want {
			t.Errorf("after a write of %d members the next waits %s, want %s", members, wait, want)
		}
		if wait := p.write(key, step, now); wait != stride {
			t.Errorf("after a write of %d members a step waits %s, want %s", members, wait, stride)
		}
		if wait := p.write(key, news, now); wait != 0 {
			t.Errorf("after a write of %d members news wait %s", members, wait)
		}
	}
}

func TestSpacing_ComputesManyMembersOncePerSecond(t *testing.T) {
	key, now := types.NamespacedName{Name: "p"}, time.Unix(1000, 0)
	var p spacing
	p.computes(key, hastyMembers, now)
	if wait := p.compute(key, now); wait != 0 {
		t.Errorf("a status of %d members is computed after %s", hastyMembers, wait)
	}
	p.computes(key, hastyMembers+1, now)
	if wait := p.compute(key, now); wait != stride {
		t.Errorf("a status of %d members is computed after %s, want %s", hastyMembers+1, wait, stride)
	}
}

func TestTells_StagesOfManyMembersAreNews(t *testing.T) {
	members, names := []placementv1beta1.BindingObject{}, []string{}
	for i := range hastyMembers + 1 {
		names = append(names, fmt.Sprintf("m-%d", i))
	}
	p, policy := placementOf(nil), decided(names...)
	tell := func(conditions ...string) bool {
		members = members[:0]
		for _, name := range names {
			members = append(members, bound(name, conditions...))
		}
		status := Compute(&Observed{Placement: p, Policy: policy, Snapshot: "p-2-snapshot", Index: "2", Bindings: members})
		reported := importanceOf(p, status)
		p.Status = *status
		return reported == news
	}
	for n := range allReady {
		if !tell(allReady[:n+1]...) {
			t.Errorf("stage %s of all members is not news", allReady[n])
		}
		if tell(allReady[:n+1]...) {
			t.Errorf("unchanged stage %s of all members is news", allReady[n])
		}
	}
}

func TestTells_StartAndCompletionAreNews(t *testing.T) {
	compute := func(p *placementv1beta1.ClusterResourcePlacement, policy *placementv1beta1.ClusterSchedulingPolicySnapshot, conditions ...string) *placementv1beta1.PlacementStatus {
		return Compute(&Observed{Placement: p, Policy: policy, Snapshot: "p-2-snapshot", Index: "2",
			Bindings: []placementv1beta1.BindingObject{bound("a", conditions...)}})
	}
	undecided := decided("a")
	undecided.Status.Conditions = nil
	steps := []struct {
		what       string
		policy     *placementv1beta1.ClusterSchedulingPolicySnapshot
		conditions []string
		tells      importance
	}{
		{"nothing is decided", undecided, nil, news},
		{"it is scheduled", decided("a"), nil, news},
		{"the rollout has started", decided("a"), allReady[:1], step},
		{"the works are there", decided("a"), allReady[:3], step},
		{"it is applied", decided("a"), allReady[:4], step},
		{"it is available", decided("a"), allReady, news},
		{"it still is", decided("a"), allReady, details},
		{"it is not any more", decided("a"), allReady[:4], step},
		{"it is available again", decided("a"), allReady, news},
		{"it cannot be scheduled any more", decided("!a"), nil, news},
	}
	p := placementOf(nil)
	for _, step := range steps {
		status := compute(p, step.policy, step.conditions...)
		if got := importanceOf(p, status); got != step.tells {
			t.Errorf("%s: tells() = %d, want %d", step.what, got, step.tells)
		}
		p.Status = *status
	}
}
