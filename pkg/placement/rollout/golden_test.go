// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/override"
	"fleetgate.io/fleetgate/test/support/golden"
)

// The input and output are bindings, so that the implementation between them can change.
func TestSteps_MatchGoldenFile(t *testing.T) {
	golden.Seeds(t, "steps", 10000, func(seed uint64) string {
		d := dice{rand.New(rand.NewPCG(seed, 3))}
		spec, bindings := d.spec(), d.bindings()
		pace, err := PaceOf(spec, bindings)
		if err != nil {
			return "error: " + err.Error() + "\n"
		}
		text := fmt.Sprintf("target %d unavailable %d surge %d period %s\n", pace.Target, pace.MaxUnavailable, pace.MaxSurge, pace.UnavailablePeriod)
		goal := goal{snapshot: "new", overrides: map[string]override.Set{}}
		pauses := pauses{placement: d.chance(3), members: map[string]bool{"m-1": d.chance(20), "m-4": d.chance(20)}}
		pace.Moves = d.chance(20)
		steps := Plan(bindings, goal.candidates(pauses), pace, now)
		return text + written("update", steps.Update) + written("remove", steps.Remove) + written("blocked", steps.Blocked) +
			written("settled", steps.Settled) + fmt.Sprintf("again %s\n", steps.Again)
	})
}

func written(what string, bindings []placementv1beta1.BindingObject) string {
	names := make([]string, 0, len(bindings))
	for _, b := range bindings {
		names = append(names, b.GetName())
	}
	return what + ": " + strings.Join(names, " ") + "\n"
}

// dice generates random cases; the same seed gives the same cases.
type dice struct{ *rand.Rand }

func (d dice) chance(percent int) bool { return d.IntN(100) < percent }

func (d dice) one(of ...string) string { return of[d.IntN(len(of))] }

func (d dice) spec() *placementv1beta1.PlacementSpec {
	spec := &placementv1beta1.PlacementSpec{}
	switch d.IntN(4) {
	case 0:
		spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickN, NumberOfClusters: ptr.To(int32(d.IntN(14)))}
	case 1:
		spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixed, ClusterNames: []string{"m-0", "m-1", "m-2"}[:d.IntN(4)]}
	case 2:
		spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAll}
	}
	if d.chance(75) {
		update := &placementv1beta1.RollingUpdateConfig{}
		if d.chance(80) {
			update.MaxUnavailable = ptr.To(intstr.Parse(d.one("0", "1", "2", "5", "10%", "33%", "100%", "x%")))
		}
		if d.chance(80) {
			update.MaxSurge = ptr.To(intstr.Parse(d.one("0", "1", "3", "10%", "50%")))
		}
		if d.chance(60) {
			update.UnavailablePeriodSeconds = ptr.To(d.IntN(200))
		}
		spec.Strategy.RollingUpdate = update
	}
	return spec
}

func (d dice) bindings() []placementv1beta1.BindingObject {
	all := make([]placementv1beta1.BindingObject, d.IntN(14))
	for i := range all {
		all[i] = d.binding(i)
	}
	return all
}

func (d dice) binding(i int) placementv1beta1.BindingObject {
	state := placementv1beta1.BindingState(d.one("Bound", "Bound", "Bound", "Scheduled", "Unscheduled"))
	snapshot := d.one("old", "old", "new", "new", "")
	if state == scheduled && d.chance(80) {
		snapshot = ""
	}
	m := binding(fmt.Sprintf("b-%02d", i), state, snapshot)
	m.Spec.TargetCluster = fmt.Sprintf("m-%d", i)
	if d.chance(6) {
		m.Spec.ClusterResourceOverrideSnapshots = []string{"of-before"}
	}
	if d.chance(10) {
		m = m.going()
	}
	for _, condition := range [][]string{
		{placementv1beta1.ConditionOverridden, placementv1beta1.ReasonOverriddenPending, "OverriddenFailed"},
		{placementv1beta1.ConditionWorkSynchronized, placementv1beta1.ReasonWorkNotSynchronizedYet, placementv1beta1.ReasonSyncWorkFailed},
		{placementv1beta1.ConditionApplied, placementv1beta1.ReasonApplyPending, placementv1beta1.ReasonNotAllWorkHaveBeenApplied},
		{placementv1beta1.ConditionAvailable, placementv1beta1.ReasonResourceNotAvailableYet, placementv1beta1.ReasonAllWorkAreAvailable, placementv1beta1.ReasonNotAllWorkAreAvailabilityTrackable},
		{placementv1beta1.ConditionDiffReported, "DiffReportFailed"},
	} {
		if d.chance(map[bool]int{true: 70, false: 20}[condition[0] == placementv1beta1.ConditionAvailable]) {
			status := metav1.ConditionStatus(d.one("True", "True", "True", "True", "False", "Unknown"))
			m = m.with(condition[0], status, d.one(condition[1:]...), time.Duration(d.IntN(150))*time.Second)
			if d.chance(10) {
				m.Status.Conditions[len(m.Status.Conditions)-1].ObservedGeneration--
			}
		}
	}
	return m.ClusterResourceBinding
}
