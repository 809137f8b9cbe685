// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// The test plays random rollouts to their end: from all members available on the old snapshot, some of
// them to be replaced by others, to all wanted members on the new snapshot.
func TestPlan_NeverExceedsMaxUnavailable(t *testing.T) {
	for seed := range uint64(500) {
		dice := rand.New(rand.NewPCG(seed, 1))
		pace := Pace{Target: 1 + dice.IntN(12), MaxUnavailable: dice.IntN(4), MaxSurge: dice.IntN(3)}
		if pace.MaxUnavailable == 0 && pace.MaxSurge == 0 {
			pace.MaxUnavailable = 1 // Otherwise nothing could move.
		}
		replaced := dice.IntN(pace.Target + 1)
		if pace.MaxUnavailable == 0 {
			replaced = pace.Target // An update in place makes a member unavailable.
		}
		all := join(
			several(pace.Target-replaced, bound, "old", maker.ready),
			several(replaced, unscheduled, "old", maker.ready),
			several(replaced, scheduled, "", plain),
		)
		play(t, seed, dice, pace, all)
	}
}

// Bindings of new members can be bound at creation. They take the turns of those that the rollout would
// start with, by name, and the limits hold afterwards.
func TestBegin_NeverExceedsMaxUnavailable(t *testing.T) {
	begun, left := 0, 0
	for seed := range uint64(500) {
		dice := rand.New(rand.NewPCG(seed, 2))
		pace := Pace{Target: 1 + dice.IntN(12), MaxUnavailable: dice.IntN(4), MaxSurge: dice.IntN(3)}
		if pace.MaxUnavailable == 0 && pace.MaxSurge == 0 {
			pace.MaxUnavailable = 1
		}
		replaced := dice.IntN(pace.Target + 1)
		if pace.MaxUnavailable == 0 {
			replaced = pace.Target
		}
		there := join(
			several(pace.Target-replaced, bound, "old", maker.ready),
			several(replaced, unscheduled, "old", maker.ready),
		)
		fresh := several(replaced, scheduled, "", plain)
		for i := range fresh {
			fresh[i].Name = fmt.Sprintf("fresh-%02d", i)
		}
		now := &rolloutInput{spec: specOf(pace), strategy: &placementv1beta1.ApplyStrategy{}, goal: goal{snapshot: "new"}, at: now}
		if err := now.begin(bindingsOf(there), bindingsOf(fresh)); err != nil {
			t.Fatalf("seed %d: begin: %v", seed, err)
		}
		for i, m := range fresh {
			switch {
			case m.Spec.State != bound:
				left++
			case i > 0 && fresh[i-1].Spec.State != bound:
				t.Fatalf("seed %d: %s was bound before its turn", seed, m.Name)
			default:
				begun++
			}
		}
		play(t, seed, dice, pace, join(there, fresh))
	}
	if begun == 0 || left == 0 {
		t.Errorf("%d were bound and %d waited: the seeds cover only one case", begun, left)
	}
}

// specOf is a spec with a pace.
func specOf(pace Pace) *placementv1beta1.PlacementSpec {
	spec := &placementv1beta1.PlacementSpec{Policy: &placementv1beta1.PlacementPolicy{
		PlacementType: placementv1beta1.PickN, NumberOfClusters: new(int32(pace.Target))}}
	spec.Strategy.RollingUpdate = &placementv1beta1.RollingUpdateConfig{
		MaxUnavailable: new(intstr.FromInt32(int32(pace.MaxUnavailable))), MaxSurge: new(intstr.FromInt32(int32(pace.MaxSurge)))}
	return spec
}

func TestBegin_BindsNoneWhileOthersWait(t *testing.T) {
	fresh := several(2, scheduled, "", plain)
	now := &rolloutInput{spec: specOf(Pace{Target: 3}), strategy: &placementv1beta1.ApplyStrategy{}, goal: goal{snapshot: "new"}, at: now}
	if err := now.begin(bindingsOf(several(1, scheduled, "", plain)), bindingsOf(fresh)); err != nil {
		t.Fatal(err)
	}
	for _, m := range fresh {
		if m.Spec.State != scheduled {
			t.Errorf("%s is %s", m.Name, m.Spec.State)
		}
	}
}

func TestBegin_BindsNoneUnderExternalRollout(t *testing.T) {
	fresh := several(1, scheduled, "", plain)
	placement := &placementv1beta1.ClusterResourcePlacement{Spec: *specOf(Pace{Target: 1})}
	placement.Spec.Strategy.Type = placementv1beta1.ExternalStrategy
	if err := new(Reconciler).Begin(t.Context(), placement, nil, bindingsOf(fresh)); err != nil {
		t.Fatal(err)
	}
	if fresh[0].Spec.State != scheduled {
		t.Errorf("%s is %s", fresh[0].Name, fresh[0].Spec.State)
	}
}

func play(t *testing.T, seed uint64, dice *rand.Rand, pace Pace, all []maker) {
	t.Helper()
	for round := 0; ; round++ {
		if round > 200 {
			t.Fatalf("seed %d: rollout does not end: %+v", seed, pace)
		}
		steps := Plan(bindingsOf(all), goal{snapshot: "new"}.candidates(pauses{}), pace, now)
		for _, b := range steps.Update {
			*find(all, b) = binding(b.GetName(), bound, "new")
		}
		all = slices.DeleteFunc(all, func(m maker) bool {
			return slices.Contains(steps.Remove, placementv1beta1.BindingObject(m.ClusterResourceBinding))
		})
		ready := 0
		for _, m := range all {
			if ok, _ := candidateOf(m.ClusterResourceBinding, "new", false).readiness(0, now); ok {
				ready++
			}
		}
		if ready < pace.Target-pace.MaxUnavailable {
			t.Fatalf("seed %d, round %d: %d of %d available, maxUnavailable %d", seed, round, ready, pace.Target, pace.MaxUnavailable)
		}
		placed := 0
		for _, m := range all {
			if m.Spec.State != scheduled {
				placed++
			}
		}
		if placed > pace.Target+pace.MaxSurge {
			t.Fatalf("seed %d, round %d: %d members have it, target %d, maxSurge %d", seed, round, placed, pace.Target, pace.MaxSurge)
		}
		if ready == pace.Target && len(all) == pace.Target && done(all) {
			return
		}
		for i := range all { // Some become available.
			if m := all[i]; m.Spec.ResourceSnapshotName == "new" && len(m.Status.Conditions) == 0 && dice.IntN(2) == 0 {
				all[i] = m.ready()
			}
		}
	}
}

func done(all []maker) bool {
	return !slices.ContainsFunc(all, func(m maker) bool { return m.Spec.State != bound || m.Spec.ResourceSnapshotName != "new" })
}

func bindingsOf(all []maker) []placementv1beta1.BindingObject {
	var list []placementv1beta1.BindingObject
	for _, m := range all {
		list = append(list, m.ClusterResourceBinding)
	}
	return list
}

func find(all []maker, b placementv1beta1.BindingObject) *maker {
	i := slices.IndexFunc(all, func(m maker) bool { return placementv1beta1.BindingObject(m.ClusterResourceBinding) == b })
	return &all[i]
}
