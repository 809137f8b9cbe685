// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// Sentences that clients compare.
const (
	evictionPlacementGoing = "cluster resource placement %s is being deleted"
	evictionNotSupported   = "cluster resource placement policy type %s is not supported"
	budgetMaxUnavailable   = "cluster resource placement policy type PickAll is not supported with any specified max unavailable %v"
	budgetMinPercentage    = "cluster resource placement policy type PickAll is not supported with min available as a percentage %v"
)

// ValidateEviction returns what keeps members from being evicted from a placement;
// nil, if there is none of that name: the eviction itself will say so.
func ValidateEviction(placement *placementv1beta1.ClusterResourcePlacement) field.ErrorList {
	if placement == nil {
		return nil
	}
	path := field.NewPath("spec", "placementName")
	var all field.ErrorList
	if placement.DeletionTimestamp != nil {
		all = append(all, field.Invalid(path, placement.Name, fmt.Sprintf(evictionPlacementGoing, placement.Name)))
	}
	if placementType(placement.Spec.Policy) == placementv1beta1.PickFixed {
		all = append(all, field.Invalid(path, placement.Name, fmt.Sprintf(evictionNotSupported, placementv1beta1.PickFixed)))
	}
	return all
}

// ValidateBudget returns what a budget asks for that its placement cannot give; nil
// placements, those that are still to be made, can give anything. A placement of
// type PickAll wants no number of members, so none can be missing and no percentage
// be taken.
func ValidateBudget(budget *placementv1beta1.PlacementDisruptionBudgetSpec, placement *placementv1beta1.ClusterResourcePlacement) field.ErrorList {
	if placement == nil || placementType(placement.Spec.Policy) != placementv1beta1.PickAll {
		return nil
	}
	path := field.NewPath("spec")
	var all field.ErrorList
	if budget.MaxUnavailable != nil {
		all = append(all, field.Forbidden(path.Child("maxUnavailable"), fmt.Sprintf(budgetMaxUnavailable, budget.MaxUnavailable)))
	}
	if budget.MinAvailable != nil && budget.MinAvailable.Type == intstr.String {
		all = append(all, field.Forbidden(path.Child("minAvailable"), fmt.Sprintf(budgetMinPercentage, budget.MinAvailable)))
	}
	return all
}
