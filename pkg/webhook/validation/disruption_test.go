// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

func placementOf(policy *placementv1beta1.PlacementPolicy) *placementv1beta1.ClusterResourcePlacement {
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	placement.Spec.Policy = policy
	return placement
}

func TestValidateEviction(t *testing.T) {
	going := placementOf(&placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixed})
	going.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	tests := map[string]struct {
		placement *placementv1beta1.ClusterResourcePlacement
		want      []string
	}{
		"of no placement":    {},
		"of all members":     {placement: placementOf(nil)},
		"of some members":    {placement: placementOf(&placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickN})},
		"of fixed members":   {placement: placementOf(&placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixed}), want: []string{"spec.placementName: policy type PickFixed is not supported"}},
		"of what is leaving": {placement: going, want: []string{"spec.placementName: cluster resource placement web is being deleted", "spec.placementName: PickFixed"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { compareProblems(t, tt.want, ValidateEviction(tt.placement)) })
	}
}

func TestValidateBudget(t *testing.T) {
	both := placementv1beta1.PlacementDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(1)), MinAvailable: ptr.To(intstr.FromString("50%"))}
	tests := map[string]struct {
		budget    placementv1beta1.PlacementDisruptionBudgetSpec
		placement *placementv1beta1.ClusterResourcePlacement
		want      []string
	}{
		"of no placement":           {budget: both},
		"of some members":           {budget: both, placement: placementOf(&placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickN})},
		"a number that stays":       {budget: placementv1beta1.PlacementDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(1))}, placement: placementOf(nil)},
		"of all members, any other": {budget: both, placement: placementOf(nil), want: []string{"spec.maxUnavailable: any specified max unavailable 1", "spec.minAvailable: min available as a percentage 50%"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { compareProblems(t, tt.want, ValidateBudget(&tt.budget, tt.placement)) })
	}
}
