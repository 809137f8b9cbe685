// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package updaterun

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/placement/objects"
	"fleetgate.io/fleetgate/pkg/placement/rollout"
	"fleetgate.io/fleetgate/pkg/placement/status"
)

// Observed is the input of a decision about a run.
type Observed struct {
	Run placementv1beta1.UpdateRunObject
	// Placement is nil if it does not exist.
	Placement placementv1beta1.PlacementObject
	// Policy is the latest policy snapshot, or nil.
	Policy   placementv1beta1.PolicySnapshotObject
	Bindings []placementv1beta1.BindingObject
	// Members are the labels of the fleet's members.
	Members map[string]labels.Set
	// Paused are the paused members.
	Paused map[string]bool
	// Approvals are the run's existing approval requests by name.
	Approvals map[string]placementv1beta1.ApprovalRequestObject
	Now       time.Time
}

// Reasons of a run that does not continue.
const (
	// Refused is final: the run fails.
	Refused = "Refused"
	// Waits means that something else has to settle first.
	Waits = "Waits"
)

func refused(format string, args ...any) *refusal.Refusal {
	return refusal.New(Refused, format, args...)
}

func waits(format string, args ...any) *refusal.Refusal { return refusal.New(Waits, format, args...) }

func waiting(no *refusal.Refusal) bool { return no != nil && no.Reason == Waits }

// Initialize computes a run's stages. strategy is nil if it does not exist. The status lacks the
// resource snapshot, the members' overrides and the condition.
func Initialize(o *Observed, strategy *placementv1beta1.UpdateStrategySpec) (placementv1beta1.UpdateRunStatus, *refusal.Refusal) {
	found, no := currentState(o)
	if no != nil {
		return placementv1beta1.UpdateRunStatus{}, no
	}
	if strategy == nil {
		return placementv1beta1.UpdateRunStatus{}, refused("update strategy %q does not exist; create it, then create another run",
			o.Run.GetSpec().StagedRolloutStrategyName)
	}
	stages, no := stagesOf(o.Run.GetName(), strategy, found.bound, o.Members)
	if no != nil {
		return placementv1beta1.UpdateRunStatus{}, no
	}
	last := placementv1beta1.StageUpdatingStatus{StageName: placementv1beta1.DeleteStageName, Clusters: []placementv1beta1.ClusterUpdatingStatus{}}
	for _, name := range found.leavingNames() {
		last.Clusters = append(last.Clusters, placementv1beta1.ClusterUpdatingStatus{ClusterName: name})
	}
	return placementv1beta1.UpdateRunStatus{
		PolicySnapshotIndexUsed: found.policyIndex, PolicyObservedClusterCount: len(found.bound),
		AppliedStrategy: found.strategy, StagedUpdateStrategySnapshot: strategy.DeepCopy(),
		StagesStatus: stages, DeletionStageStatus: &last,
	}, nil
}

// placementState is what a run depends on: the policy, the strategy and the bindings of its placement.
type placementState struct {
	policyIndex string
	strategy    *placementv1beta1.ApplyStrategy
	// bound are the bindings to move, by member, and leaving those to delete.
	bound, leaving map[string]placementv1beta1.BindingObject
}

func (m *placementState) leavingNames() []string {
	names := make([]string, 0, len(m.leaving))
	for name := range m.leaving {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// currentState reads the state of the placement and its bindings.
func currentState(o *Observed) (*placementState, *refusal.Refusal) {
	name := o.Run.GetSpec().PlacementName
	switch {
	case o.Placement == nil || o.Placement.GetDeletionTimestamp() != nil:
		return nil, refused("placement %q does not exist; create it, then create another run", name)
	case o.Placement.GetSpec().Strategy.Type != placementv1beta1.ExternalStrategy:
		return nil, refused("the strategy of placement %q is %s; only a placement with strategy External is rolled out by runs", name, o.Placement.GetSpec().Strategy.Type)
	case o.Policy == nil || !status.Decided(o.Placement, o.Policy):
		return nil, waits("the scheduler has not handled placement %q yet", name)
	case !hasStatus(o.Policy.GetStatus().Conditions, placementv1beta1.ConditionScheduled, metav1.ConditionTrue, o.Policy.GetGeneration()):
		return nil, refused("policy snapshot %q is not fully scheduled: the placement's condition Scheduled says why", o.Policy.GetName())
	}
	found := &placementState{
		policyIndex: o.Policy.GetLabels()[placementv1beta1.PolicyIndexLabel],
		strategy:    rollout.ApplyStrategyOf(o.Placement.GetSpec()),
		bound:       map[string]placementv1beta1.BindingObject{},
		leaving:     map[string]placementv1beta1.BindingObject{},
	}
	if no := found.sort(o); no != nil {
		return nil, no
	}
	if wanted, known := objects.Wanted(o.Placement.GetSpec().Policy); known && wanted != len(found.bound) {
		return nil, refused("the placement has %d bindings but its policy requires %d members", len(found.bound), wanted)
	}
	return found, nil
}

// sort divides the bindings.
func (m *placementState) sort(o *Observed) *refusal.Refusal {
	for _, b := range o.Bindings {
		spec := b.GetSpec()
		switch {
		case spec.State == placementv1beta1.BindingUnscheduled:
			m.leaving[spec.TargetCluster] = b
		case spec.SchedulingPolicySnapshotName != o.Policy.GetName():
			return waits("binding %q still has an older policy", b.GetName())
		default:
			m.bound[spec.TargetCluster] = b
		}
	}
	if len(m.bound)+len(m.leaving) == 0 {
		return refused("placement %q has no member, so there is nothing to roll out", o.Run.GetSpec().PlacementName)
	}
	return nil
}

// listed names up to ten members, for a message.
func listed(names []string) string {
	const most = 10
	slices.Sort(names)
	return refusal.Names(names, most)
}
