// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/placement/framework"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

// namedUnbound limits the members in a message.
const namedUnbound = 5

// suspensionRecheck is the delay after which a suspended removal is reported again: another one may
// have been in the condition.
const suspensionRecheck = 30 * time.Second

// suspendRemoval keeps members in a decision that would lose the placement only since they are no
// longer bound to its namespace, if they are many: a label, a binding or placement.tenancy that changed
// by mistake must not remove a workload everywhere. It returns the condition about them; nil if there
// are none. Small removals in a row count together: they are recorded before they are carried out.
func (r *Reconciler) suspendRemoval(ctx context.Context, placement placementv1beta1.PlacementObject, policy placementv1beta1.PolicySnapshotObject, fleet *framework.Fleet, bindings []placementv1beta1.BindingObject, decision *framework.Decision) (*metav1.Condition, error) {
	unbound, all := unboundOf(policy.GetName(), fleet, bindings, decision)
	recent := r.recentRemovals(placement, policy, decision, unbound)
	token, suspends := placementv1beta1.SuspendsRemoval(placement, unbound, all, len(recent))
	switch {
	case suspends:
		keep(decision, unbound)
		return suspended(placement, unbound, all, len(recent), token), nil
	case len(unbound) == 0:
		return nil, nil
	case placementv1beta1.RemovalConfirmed(placement, token):
		recent = nil // The user confirmed it knowing of the previous ones.
	default:
		recent.Add(r.Clock.Now(), unbound...)
	}
	return nil, objects.NoteRemovals(ctx, r.Client, policy, recent, "policy snapshot")
}

// suspendUnfit keeps members in a decision that selects none, if they are many: a mistake in a new policy must
// not remove a workload everywhere. A user who wants that deletes the placement, or asks for no member. It
// returns the condition about them; nil if there are none.
func suspendUnfit(placement placementv1beta1.PlacementObject, policy *framework.Policy, fleet *framework.Fleet, bindings []placementv1beta1.BindingObject, decision *framework.Decision) *metav1.Condition {
	if len(decision.Selected) > 0 || policy.Kind == framework.PickN && policy.Count == 0 {
		return nil
	}
	lost, all := droppedOf(fleet, bindings, decision, func(*placementv1beta1.ResourceBindingSpec) bool { return true })
	token, suspends := placementv1beta1.SuspendsRemoval(placement, lost, all, 0)
	if !suspends {
		return nil
	}
	decision.Drop = slices.DeleteFunc(decision.Drop, func(member string) bool { return slices.Contains(lost, member) })
	return &metav1.Condition{Reason: placementv1beta1.ReasonPolicyConfirmationRequired, Message: fmt.Sprintf(
		"The policy fits no member, and %d of %d members would lose the placement: %s. They keep it and get its updates. Correct spec.policy, delete the placement, or confirm the removal with \"kubectl fleetgate confirm %s\", which sets annotation %s=%s",
		len(lost), all, refusal.Names(lost, namedUnbound), klog.KObj(placement), placementv1beta1.ConfirmRemovalAnnotation, token)}
}

// unboundOf are the members that exist and that the decision drops though the policy did not change,
// sorted, and the number of members that have the placement.
func unboundOf(policySnapshot string, fleet *framework.Fleet, bindings []placementv1beta1.BindingObject, decision *framework.Decision) (unbound []string, all int) {
	return droppedOf(fleet, bindings, decision, func(spec *placementv1beta1.ResourceBindingSpec) bool {
		return spec.SchedulingPolicySnapshotName == policySnapshot
	})
}

// droppedOf are the members that exist and that the decision drops, of those whose binding counts, sorted, and
// the number of all members that have the placement.
func droppedOf(fleet *framework.Fleet, bindings []placementv1beta1.BindingObject, decision *framework.Decision, counts func(*placementv1beta1.ResourceBindingSpec) bool) (dropped []string, all int) {
	exists := sets.New[string]()
	for i := range fleet.Clusters {
		if !fleet.Clusters[i].Leaving {
			exists.Insert(fleet.Clusters[i].Name)
		}
	}
	for _, b := range bindings {
		if spec := b.GetSpec(); b.GetDeletionTimestamp() == nil && spec.State != placementv1beta1.BindingUnscheduled {
			all++
			if counts(spec) && exists.Has(spec.TargetCluster) && slices.Contains(decision.Drop, spec.TargetCluster) {
				dropped = append(dropped, spec.TargetCluster)
			}
		}
	}
	slices.Sort(dropped)
	return dropped, all
}

// keep selects members that the decision drops.
func keep(decision *framework.Decision, members []string) {
	decision.Drop = slices.DeleteFunc(decision.Drop, func(member string) bool { return slices.Contains(members, member) })
	for _, member := range members {
		decision.Selected = append(decision.Selected, framework.Choice{Cluster: member})
	}
	slices.SortFunc(decision.Selected, func(a, b framework.Choice) int { return strings.Compare(a.Cluster, b.Cluster) })
}

// recentRemovals are the recorded removals from members that are neither selected again nor dropped
// now.
func (r *Reconciler) recentRemovals(placement placementv1beta1.PlacementObject, policy placementv1beta1.PolicySnapshotObject, decision *framework.Decision, dropped []string) placementv1beta1.RecentRemovals {
	now := objects.RecordTime(placement.GetStatus().Conditions, r.Clock.Now())
	recent := placementv1beta1.ParseRecentRemovals(policy.GetAnnotations()[placementv1beta1.RecentRemovalsAnnotation], now)
	for _, choice := range decision.Selected {
		recent.Forget(choice.Cluster)
	}
	recent.Forget(dropped...)
	return recent
}

func suspended(placement placementv1beta1.PlacementObject, unbound []string, all, recent int, token string) *metav1.Condition {
	return &metav1.Condition{Reason: placementv1beta1.ReasonTenancyConfirmationRequired, Message: fmt.Sprintf(
		"%d of %d members are no longer bound to the namespace%s: %s. Members keep the placement and get its updates. Bind their sets again, or confirm the removal with \"kubectl fleetgate confirm %s\", which sets annotation %s=%s",
		len(unbound), all, objects.AfterRecent(recent), refusal.Names(unbound, namedUnbound), klog.KObj(placement), placementv1beta1.ConfirmRemovalAnnotation, token)}
}

func (r *Reconciler) reportSuspension(ctx context.Context, placement placementv1beta1.PlacementObject, c *metav1.Condition) error {
	for _, reason := range []string{placementv1beta1.ReasonPolicyConfirmationRequired, placementv1beta1.ReasonTenancyConfirmationRequired} {
		var about *metav1.Condition
		if c != nil && c.Reason == reason {
			about = c
		}
		if err := objects.ReportSuspension(ctx, r.Client, r.Recorder, placement, reason, about, "Schedule"); err != nil {
			return err
		}
	}
	return nil
}
