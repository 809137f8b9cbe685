// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Condition types of an eviction. It is finished once Valid is False or Executed is set.
const (
	// ConditionEvictionValid is True if the placement has one binding to the member and its type is
	// not PickFixed.
	ConditionEvictionValid = "Valid"
	// ConditionEvictionExecuted is True if the binding was deleted, and False if the eviction is
	// not allowed.
	ConditionEvictionExecuted = "Executed"
)

// Reasons of an eviction's conditions.
const (
	ReasonEvictionValid       = "ClusterResourcePlacementEvictionValid"
	ReasonEvictionInvalid     = "ClusterResourcePlacementEvictionInvalid"
	ReasonEvictionExecuted    = "ClusterResourcePlacementEvictionExecuted"
	ReasonEvictionNotExecuted = "ClusterResourcePlacementEvictionNotExecuted"
)

// ClusterResourcePlacementEviction requests, once, to remove a ClusterResourcePlacement from one
// member. The scheduler can pick the member again.
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
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[-1:].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterResourcePlacementEviction struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec identifies the placement and the member.
	//
	// +required
	Spec PlacementEvictionSpec `json:"spec"`

	// status is the result.
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

// PlacementEvictionSpec identifies a placement and a member.
type PlacementEvictionSpec struct {
	// placementName is the name of the ClusterResourcePlacement. Immutable.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="The PlacementName field is immutable"
	PlacementName string `json:"placementName"`

	// clusterName is the name of the member. Immutable.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="The ClusterName field is immutable"
	ClusterName string `json:"clusterName"`
}

// PlacementEvictionStatus is the result of an eviction.
type PlacementEvictionStatus struct {
	// conditions are Valid and Executed.
	//
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
