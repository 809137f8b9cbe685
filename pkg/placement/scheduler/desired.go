// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/kube/hash"
	"fleetgate.io/fleetgate/pkg/placement/framework"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

// maxUnselected is the number of unselected clusters that a status names.
const maxUnselected = 20

// Telling limits a profile's report to what fits into a policy snapshot's status.
func Telling(profile framework.Profile) framework.Profile {
	profile.MaxUnselected = maxUnselected
	return profile
}

// bindingName is the only possible name of a placement's binding to a member.
func bindingName(placement string, uid types.UID, member string) string {
	return placementv1beta1.BindingName(placement, member, hash.Of(string(uid)+"/"+member))
}

// desiredBinding is a new binding, which the rollout has not seen yet.
func desiredBinding(placement placementv1beta1.PlacementObject, policySnapshot string, choice framework.Choice) placementv1beta1.BindingObject {
	b := objects.NewBinding(placement.GetNamespace())
	b.SetNamespace(placement.GetNamespace())
	b.SetName(bindingName(placement.GetName(), placement.GetUID(), choice.Cluster))
	b.SetLabels(map[string]string{placementv1beta1.ParentPlacementLabel: placement.GetName()})
	b.SetFinalizers([]string{placementv1beta1.SchedulerBindingFinalizer})
	*b.GetSpec() = placementv1beta1.ResourceBindingSpec{
		State: placementv1beta1.BindingScheduled, SchedulingPolicySnapshotName: policySnapshot,
		TargetCluster: choice.Cluster, ClusterDecision: decisionOf(choice, true),
	}
	return b
}

func decisionOf(choice framework.Choice, selected bool) placementv1beta1.ClusterDecision {
	d := placementv1beta1.ClusterDecision{ClusterName: choice.Cluster, Selected: selected, Reason: ReasonOf(choice)}
	if choice.Score != nil {
		d.ClusterScore = &placementv1beta1.ClusterScore{AffinityScore: &choice.Score.Affinity, TopologySpreadScore: &choice.Score.Spread}
	}
	return d
}

// adopt makes a binding serve the policy snapshot. A binding that was to be withdrawn returns to its
// previous state.
func adopt(b placementv1beta1.BindingObject, policySnapshot string, choice framework.Choice) {
	spec := b.GetSpec()
	spec.SchedulingPolicySnapshotName = policySnapshot
	spec.ClusterDecision = decisionOf(choice, true)
	if spec.State != placementv1beta1.BindingUnscheduled {
		return
	}
	spec.State = placementv1beta1.BindingScheduled
	annotations := b.GetAnnotations()
	if annotations[placementv1beta1.PreviousBindingStateAnnotation] == string(placementv1beta1.BindingBound) {
		spec.State = placementv1beta1.BindingBound
	}
	delete(annotations, placementv1beta1.PreviousBindingStateAnnotation)
	b.SetAnnotations(annotations)
}

// drop marks a binding for withdrawal.
func drop(b placementv1beta1.BindingObject) {
	reconcileutil.SetAnnotation(b, placementv1beta1.PreviousBindingStateAnnotation, string(b.GetSpec().State))
	b.GetSpec().State = placementv1beta1.BindingUnscheduled
}

// setStatus writes the decision into a policy snapshot's status. why is the diagnosis of an unfulfilled
// decision, or "".
func setStatus(s placementv1beta1.PolicySnapshotObject, placementGeneration int64, decision *framework.Decision, why string) {
	status := s.GetStatus()
	status.ObservedCRPGeneration = placementGeneration
	status.TargetClusters = decisions(status.TargetClusters, decision)
	condition := metav1.Condition{
		Type: placementv1beta1.ConditionScheduled, Status: metav1.ConditionTrue,
		ObservedGeneration: s.GetGeneration(), Reason: placementv1beta1.ReasonSchedulingPolicyFulfilled,
		Message: fmt.Sprintf("found all cluster needed as specified by the scheduling policy, found %d cluster(s)", len(decision.Selected)),
	}
	if !decision.Fulfilled {
		condition.Status, condition.Reason = metav1.ConditionFalse, placementv1beta1.ReasonSchedulingPolicyUnfulfilled
		condition.Message = fmt.Sprintf("could not find all clusters needed as specified by the scheduling policy, found %d cluster(s) instead", len(decision.Selected))
	}
	condition.Message += why
	meta.SetStatusCondition(&status.Conditions, condition)
}

// setUnserved reports in a policy snapshot's status that no decision is possible.
func setUnserved(s placementv1beta1.PolicySnapshotObject, placementGeneration int64, refused *refusal.Refusal) {
	s.GetStatus().ObservedCRPGeneration = placementGeneration
	meta.SetStatusCondition(&s.GetStatus().Conditions, metav1.Condition{
		Type: placementv1beta1.ConditionScheduled, Status: metav1.ConditionFalse,
		ObservedGeneration: s.GetGeneration(), Reason: refused.Reason, Message: refused.Message,
	})
}

// decisions lists the selected members, then some of the others. If no other member was examined and
// the same ones are selected, the previous entries of the others stay.
func decisions(before []placementv1beta1.ClusterDecision, decision *framework.Decision) []placementv1beta1.ClusterDecision {
	var all []placementv1beta1.ClusterDecision
	for _, choice := range decision.Selected[:min(len(decision.Selected), objects.MaxDecisions)] {
		all = append(all, decisionOf(choice, true))
	}
	if decision.Settled && len(before) >= len(all) && equality.Semantic.DeepEqual(before[:len(all)], all) &&
		(len(before) == len(all) || !before[len(all)].Selected) {
		return before
	}
	room := min(maxUnselected, objects.MaxDecisions-len(all))
	for _, choice := range decision.Unselected[:min(len(decision.Unselected), room)] {
		all = append(all, decisionOf(choice, false))
	}
	return all
}
