// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package updaterun

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// check compares the placement with its state at the initialization of the run.
func check(o *Observed) (*placementState, *refusal.Refusal) {
	found, no := currentState(o)
	if no != nil {
		return nil, no
	}
	then := o.Run.GetStatus()
	switch {
	case !equality.Semantic.DeepEqual(then.AppliedStrategy, found.strategy):
		return nil, refused("the placement's applyStrategy has changed since the run was initialised; create another run")
	case then.PolicySnapshotIndexUsed != found.policyIndex:
		return nil, refused("the placement's policy has changed since the run was initialised; create another run")
	case then.PolicyObservedClusterCount != len(found.bound):
		return nil, refused("the placement had %d members when the run was initialised, and has %d now; create another run", then.PolicyObservedClusterCount, len(found.bound))
	case then.StagedUpdateStrategySnapshot == nil || then.DeletionStageStatus == nil:
		return nil, refused("the run's status has no stages: another client changed it; create another run")
	}
	if no := checkStages(o, found); no != nil {
		return nil, no
	}
	return found, nil
}

func checkStages(o *Observed, found *placementState) *refusal.Refusal {
	then := o.Run.GetStatus()
	now, no := stagesOf(o.Run.GetName(), then.StagedUpdateStrategySnapshot, found.bound, o.Members)
	if no != nil {
		return no
	}
	if len(now) != len(then.StagesStatus) {
		return refused("the run's status has %d stages but its strategy has %d: another client changed it; create another run", len(then.StagesStatus), len(now))
	}
	for i := range now {
		was, is := memberNames(&then.StagesStatus[i]), memberNames(&now[i])
		if then.StagesStatus[i].StageName != now[i].StageName || !equality.Semantic.DeepEqual(was, is) {
			return refused("the members of stage %q have changed since the run was initialised, from [%s] to [%s]; create another run", now[i].StageName, listed(was), listed(is))
		}
	}
	leaving := memberNames(then.DeletionStageStatus)
	for _, name := range found.leavingNames() {
		if !slices.Contains(leaving, name) {
			return refused("member %q has been unscheduled since the run was initialised; create another run", name)
		}
	}
	return nil
}

func memberNames(stage *placementv1beta1.StageUpdatingStatus) []string {
	names := make([]string, 0, len(stage.Clusters))
	for _, c := range stage.Clusters {
		names = append(names, c.ClusterName)
	}
	return names
}
