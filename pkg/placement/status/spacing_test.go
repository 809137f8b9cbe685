// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

func TestAPlacementIsWrittenOnceASecond(t *testing.T) {
	key, now := types.NamespacedName{Name: "p"}, time.Unix(1000, 0)
	var p spacing
	if wait := p.wait(key, now); wait != 0 {
		t.Errorf("the first write waits %s", wait)
	}
	p.writes(key, 201, now)
	if wait := p.wait(key, now.Add(300*time.Millisecond)); wait != 700*time.Millisecond {
		t.Errorf("the second write waits %s, want 700ms", wait)
	}
	if wait := p.wait(types.NamespacedName{Name: "other"}, now); wait != 0 {
		t.Errorf("another placement waits %s", wait)
	}
	if wait := p.wait(key, now.Add(stride)); wait != 0 {
		t.Errorf("after a second it waits %s", wait)
	}
	if !p.isLarge(key) {
		t.Error("201 members are few: their news wait for nothing")
	}
	p.writes(key, 200, now)
	if p.isLarge(key) {
		t.Error("the news of 200 members wait too")
	}
	p.forget(key)
	if wait := p.wait(key, now); wait != 0 || len(p.wrote) != 0 {
		t.Errorf("a placement that is gone is remembered: %v", p.wrote)
	}
}

func TestWhatPeopleWaitForIsToldAtOnceAndStepsBetweenAreGathered(t *testing.T) {
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
		news       bool
	}{
		{"nothing is decided", undecided, nil, true},
		{"it is scheduled", decided("a"), nil, true},
		{"the rollout has started", decided("a"), wellOff[:1], false},
		{"the works are there", decided("a"), wellOff[:3], false},
		{"it is applied", decided("a"), wellOff[:4], false},
		{"it is available", decided("a"), wellOff, true},
		{"it still is", decided("a"), wellOff, false},
		{"it is not any more", decided("a"), wellOff[:4], false},
		{"it is available again", decided("a"), wellOff, true},
		{"it cannot be scheduled any more", decided("!a"), nil, true},
	}
	p := placementOf(nil)
	for _, step := range steps {
		status := compute(p, step.policy, step.conditions...)
		if got := isNews(p, status); got != step.news {
			t.Errorf("when %s: isNews = %t, want %t", step.what, got, step.news)
		}
		p.Status = *status
	}
}
