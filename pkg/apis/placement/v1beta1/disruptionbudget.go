// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ClusterResourcePlacementDisruptionBudget limits evictions of the ClusterResourcePlacement of the
// same name.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=crpdb,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
type ClusterResourcePlacementDisruptionBudget struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the limit. A user writes it.
	//
	// +required
	Spec PlacementDisruptionBudgetSpec `json:"spec"`
}

// ClusterResourcePlacementDisruptionBudgetList is a list of ClusterResourcePlacementDisruptionBudgets.
//
// +kubebuilder:object:root=true
type ClusterResourcePlacementDisruptionBudgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourcePlacementDisruptionBudget `json:"items"`
}

// PlacementDisruptionBudgetSpec sets maxUnavailable or minAvailable, not both.
//
// +kubebuilder:validation:XValidation:rule="!has(self.maxUnavailable) || !has(self.minAvailable)",message="Both MaxUnavailable and MinAvailable cannot be specified"
type PlacementDisruptionBudgetSpec struct {
	// maxUnavailable is how many of the desired members can be unavailable after an eviction: a
	// number, or a percentage, rounded up. For PickN placements only. Excludes minAvailable.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^([0-9]{1,2}|100)%$')",message="If supplied value is String should match regex '^(100|[0-9]{1,2})%$' or If supplied value is Integer must be greater than or equal to 0"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// minAvailable is how many members must remain available after an eviction: a number or, for
	// PickN placements, a percentage of the desired members, rounded up. Excludes maxUnavailable.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^([0-9]{1,2}|100)%$')",message="If supplied value is String should match regex '^(100|[0-9]{1,2})%$' or If supplied value is Integer must be greater than or equal to 0"
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`
}
