// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/rollout"
)

// Clients compare these messages.
const (
	messageValid = "Eviction is valid"

	messageNoPlacement       = "Failed to find ClusterResourcePlacement targeted by eviction"
	messagePlacementDeleting = "Found deleting ClusterResourcePlacement targeted by eviction"
	messagePickFixed         = "Found ClusterResourcePlacement with PickFixed placement type targeted by eviction"
	messageNoBinding         = "Failed to find scheduler decision for placement in cluster targeted by eviction"
	messageManyBindings      = "Found more than one scheduler decision for placement in cluster targeted by eviction"

	messageBeingRemoved  = "Eviction is allowed, resources propagated by placement is currently being removed from cluster targeted by eviction"
	messageFailed        = "Eviction is allowed, placement has failed"
	messageNoBudget      = "Eviction is allowed, no ClusterResourcePlacementDisruptionBudget specified"
	messageWithinBudget  = "Eviction is allowed by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: %d, totalPlacements: %d"
	messageNothingPlaced = "Eviction is blocked, placement has not propagated resources to target cluster yet"
	messageBadBudget     = "Eviction is blocked by misconfigured ClusterResourcePlacementDisruptionBudget, either MaxUnavailable is specified or MinAvailable is specified as a percentage for PickAll ClusterResourcePlacement"
	messageOverBudget    = "Eviction is blocked by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: %d, totalPlacements: %d"
)

// Case is the input of a decision.
type Case struct {
	// Member is the member to remove the placement from.
	Member string
	// Placement is nil if it does not exist.
	Placement *placementv1beta1.ClusterResourcePlacement
	// Bindings are all bindings of the placement.
	Bindings []placementv1beta1.BindingObject
	// Budget is nil if the placement has none.
	Budget *placementv1beta1.ClusterResourcePlacementDisruptionBudget
	// Unreachable are members without a heartbeat. Nobody knows whether the placement is still available
	// there.
	Unreachable sets.Set[string]
}

// Verdict is the decision on an eviction.
type Verdict struct {
	// Valid is false if there is nothing to evict.
	Valid bool
	// Executed is true if the placement can be removed, or is already being removed.
	Executed bool
	// Message is the reason.
	Message string
	// Delete is the binding to delete; nil if that is not needed.
	Delete placementv1beta1.BindingObject
}

// Decide decides on an eviction.
func Decide(c *Case) Verdict {
	switch {
	case c.Placement == nil:
		return Verdict{Message: messageNoPlacement}
	case c.Placement.DeletionTimestamp != nil:
		return Verdict{Message: messagePlacementDeleting}
	case c.kind() == placementv1beta1.PickFixed:
		return Verdict{Message: messagePickFixed}
	}
	var binding placementv1beta1.BindingObject
	for _, b := range c.Bindings {
		if b.GetSpec().TargetCluster != c.Member {
			continue
		}
		if binding != nil {
			return Verdict{Message: messageManyBindings}
		}
		binding = b
	}
	if binding == nil {
		return Verdict{Message: messageNoBinding}
	}
	return c.decideFor(binding)
}

func (c *Case) kind() placementv1beta1.PlacementType {
	if policy := c.Placement.Spec.Policy; policy != nil && policy.PlacementType != "" {
		return policy.PlacementType
	}
	return placementv1beta1.PickAll
}

func (c *Case) decideFor(b placementv1beta1.BindingObject) Verdict {
	allowed := func(message string) Verdict { return Verdict{Valid: true, Executed: true, Message: message, Delete: b} }
	blocked := func(message string) Verdict { return Verdict{Valid: true, Message: message} }
	switch {
	case b.GetDeletionTimestamp() != nil:
		return Verdict{Valid: true, Executed: true, Message: messageBeingRemoved}
	case !placed(b):
		return blocked(messageNothingPlaced)
	case rollout.Failed(b) || isTrue(b, placementv1beta1.ConditionDiffReported):
		return allowed(messageFailed)
	case c.Budget == nil:
		return allowed(messageNoBudget)
	case c.kind() == placementv1beta1.PickAll && !fitsPickAll(&c.Budget.Spec):
		return blocked(messageBadBudget)
	}
	available := c.available()
	if c.disruptions(available) > 0 {
		return allowed(fmt.Sprintf(messageWithinBudget, available, len(c.Bindings)))
	}
	return blocked(fmt.Sprintf(messageOverBudget, available, len(c.Bindings)))
}

// placed reports whether something was sent to the member.
func placed(b placementv1beta1.BindingObject) bool {
	switch b.GetSpec().State {
	case placementv1beta1.BindingBound:
		return true
	case placementv1beta1.BindingUnscheduled:
		return b.GetAnnotations()[placementv1beta1.PreviousBindingStateAnnotation] == string(placementv1beta1.BindingBound)
	}
	return false
}

// fitsPickAll reports whether a budget is valid for a placement without a desired number of members.
// Only an absolute number of available ones is.
func fitsPickAll(budget *placementv1beta1.PlacementDisruptionBudgetSpec) bool {
	return budget.MaxUnavailable == nil && (budget.MinAvailable == nil || budget.MinAvailable.Type == intstr.Int)
}

// available counts the members on which the placement is available. Members that are about to lose it
// do not count. Unreachable ones count only if one of them is to lose it, which takes nothing from the
// others.
func (c *Case) available() int {
	n := 0
	for _, b := range c.Bindings {
		if b.GetDeletionTimestamp() == nil && isTrue(b, placementv1beta1.ConditionAvailable) &&
			(!c.Unreachable.Has(b.GetSpec().TargetCluster) || c.Unreachable.Has(c.Member)) {
			n++
		}
	}
	return n
}

// disruptions is the number of members that can lose the placement now. A percentage is of the wanted
// number, rounded up. A budget without any limit allows none.
func (c *Case) disruptions(available int) int {
	wanted := 0
	if policy := c.Placement.Spec.Policy; policy != nil {
		wanted = int(ptr.Deref(policy.NumberOfClusters, 0))
	}
	switch budget := c.Budget.Spec; {
	case budget.MaxUnavailable != nil:
		return scaled(budget.MaxUnavailable, wanted) - (len(c.Bindings) - available)
	case budget.MinAvailable != nil:
		return available - scaled(budget.MinAvailable, wanted)
	}
	return 0
}

// scaled evaluates a number or percentage; the schema allows nothing else.
func scaled(value *intstr.IntOrString, wanted int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(value, wanted, true)
	if err != nil {
		return 0
	}
	return n
}

func isTrue(b placementv1beta1.BindingObject, kind string) bool {
	c := meta.FindStatusCondition(b.GetStatus().Conditions, kind)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == b.GetGeneration()
}

// conditions are the conditions of the eviction for the answer.
func (v Verdict) conditions(generation int64) []metav1.Condition {
	valid := metav1.Condition{
		Type: placementv1beta1.ConditionEvictionValid, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason: placementv1beta1.ReasonEvictionValid, Message: messageValid,
	}
	if !v.Valid {
		valid.Status, valid.Reason, valid.Message = metav1.ConditionFalse, placementv1beta1.ReasonEvictionInvalid, v.Message
		return []metav1.Condition{valid}
	}
	executed := metav1.Condition{
		Type: placementv1beta1.ConditionEvictionExecuted, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason: placementv1beta1.ReasonEvictionExecuted, Message: v.Message,
	}
	if !v.Executed {
		executed.Status, executed.Reason = metav1.ConditionFalse, placementv1beta1.ReasonEvictionNotExecuted
	}
	return []metav1.Condition{valid, executed}
}

// isDecided reports whether an eviction was decided.
func isDecided(e *placementv1beta1.ClusterResourcePlacementEviction) bool {
	return meta.IsStatusConditionFalse(e.Status.Conditions, placementv1beta1.ConditionEvictionValid) ||
		meta.FindStatusCondition(e.Status.Conditions, placementv1beta1.ConditionEvictionExecuted) != nil
}
