// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ConditionBound of a ManagedClusterSetBinding is True when the set is there.
const ConditionBound = "Bound"

// Reasons of Bound.
const (
	// ReasonClusterSetBound goes with True.
	ReasonClusterSetBound = "ClusterSetBound"
	// ReasonClusterSetNotFound goes with False.
	ReasonClusterSetNotFound = "ClusterSetNotFound"
)

// ManagedClusterSetBinding lets Placements of its namespace choose from a set. It has the
// set's name.
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

	// status says whether the set is there.
	// +optional
	Status ManagedClusterSetBindingStatus `json:"status,omitzero"`
}

// ManagedClusterSetBindingSpec names a set.
type ManagedClusterSetBindingSpec struct {
	// clusterSet is the set's name, and the binding's.
	// +kubebuilder:validation:MinLength=1
	// +optional
	ClusterSet string `json:"clusterSet,omitempty"`
}

// ManagedClusterSetBindingStatus says whether a set is there.
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

	// items are the bindings.
	Items []ManagedClusterSetBinding `json:"items"`
}
