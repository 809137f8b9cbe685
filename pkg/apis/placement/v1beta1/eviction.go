// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The conditions of an eviction. It is over once Valid is false or Executed is
// set.
const (
	// ConditionEvictionValid: the placement and its member could be found.
	ConditionEvictionValid = "Valid"
	// ConditionEvictionExecuted: the binding was deleted, or may not be.
	ConditionEvictionExecuted = "Executed"
)

// The reasons of an eviction's conditions.
const (
	ReasonEvictionValid       = "ClusterResourcePlacementEvictionValid"
	ReasonEvictionInvalid     = "ClusterResourcePlacementEvictionInvalid"
	ReasonEvictionExecuted    = "ClusterResourcePlacementEvictionExecuted"
	ReasonEvictionNotExecuted = "ClusterResourcePlacementEvictionNotExecuted"
)

// ClusterResourcePlacementEviction asks, once, to take a
// ClusterResourcePlacement off one member. It does not keep the scheduler from
// choosing the member again.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=crpe,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Placement",type=string,JSONPath=`.spec.placementName`
// +kubebuilder:printcolumn:name="Member",type=string,JSONPath=`.spec.clusterName`
// +kubebuilder:printcolumn:name="Valid",type=string,JSONPath=`.status.conditions[?(@.type=="Valid")].status`
// +kubebuilder:printcolumn:name="Executed",type=string,JSONPath=`.status.conditions[?(@.type=="Executed")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[-1:].reason`
// +kubebuilder:printcolumn:name="Why",type=string,priority=1,JSONPath=`.status.conditions[-1:].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterResourcePlacementEviction struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec names the placement and the member.
	//
	// +required
	Spec PlacementEvictionSpec `json:"spec"`

	// status says whether it was done.
	//
	// +optional
	Status PlacementEvictionStatus `json:"status,omitzero"`
}

// ClusterResourcePlacementEvictionList is a list of ClusterResourcePlacementEvictions.
//
// +kubebuilder:object:root=true
type ClusterResourcePlacementEvictionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourcePlacementEviction `json:"items"`
}

// PlacementEvictionSpec names a placement and a member.
type PlacementEvictionSpec struct {
	// placementName is the ClusterResourcePlacement's name; it cannot be
	// changed.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="The PlacementName field is immutable"
	PlacementName string `json:"placementName"`

	// clusterName is the member's name; it cannot be changed.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="The ClusterName field is immutable"
	ClusterName string `json:"clusterName"`
}

// PlacementEvictionStatus says whether an eviction was done.
type PlacementEvictionStatus struct {
	// conditions are Valid and Executed.
	//
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
