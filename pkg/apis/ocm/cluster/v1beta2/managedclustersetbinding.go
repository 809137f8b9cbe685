// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ConditionBound of a ManagedClusterSetBinding is True when the set exists.
const ConditionBound = "Bound"

// Reasons of Bound.
const (
	// ReasonClusterSetBound goes with True.
	ReasonClusterSetBound = "ClusterSetBound"
	// ReasonClusterSetNotFound goes with False.
	ReasonClusterSetNotFound = "ClusterSetNotFound"
)

// ManagedClusterSetBinding allows Placements of its namespace to select from a set. It has the name
// of the set.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=mclsetbinding;mclsetbindings
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
type ManagedClusterSetBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec names the set.
	// +optional
	Spec ManagedClusterSetBindingSpec `json:"spec,omitzero"`

	// status is whether the set exists.
	// +optional
	Status ManagedClusterSetBindingStatus `json:"status,omitzero"`
}

// ManagedClusterSetBindingSpec names a set.
type ManagedClusterSetBindingSpec struct {
	// clusterSet is the name of the set and of the binding.
	// +kubebuilder:validation:MinLength=1
	// +optional
	ClusterSet string `json:"clusterSet,omitempty"`
}

// ManagedClusterSetBindingStatus is whether a set exists.
type ManagedClusterSetBindingStatus struct {
	// conditions has Bound.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ManagedClusterSetBindingList is a list of ManagedClusterSetBindings.
//
// +kubebuilder:object:root=true
type ManagedClusterSetBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ManagedClusterSetBinding `json:"items"`
}
