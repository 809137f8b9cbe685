// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AddOnPlacementScore is what somebody has to say of a cluster, in numbers: Placements
// choose by them. It lies in the cluster's namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
type AddOnPlacementScore struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status holds the scores.
	// +optional
	Status AddOnPlacementScoreStatus `json:"status,omitzero"`
}

// AddOnPlacementScoreStatus holds scores.
type AddOnPlacementScoreStatus struct {
	// conditions are the provider's.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// scores are by name.
	// +listType=map
	// +listMapKey=name
	// +optional
	Scores []AddOnPlacementScoreItem `json:"scores,omitempty"`
	// validUntil is when the scores end to count. Empty: never.
	// +optional
	ValidUntil *metav1.Time `json:"validUntil,omitempty"`
}

// AddOnPlacementScoreItem is one score.
type AddOnPlacementScoreItem struct {
	// name is what Placements name it by.
	Name string `json:"name"`
	// value is from -100 to 100.
	// +kubebuilder:validation:Minimum=-100
	// +kubebuilder:validation:Maximum=100
	Value int32 `json:"value"`
}

// AddOnPlacementScoreList is a list of AddOnPlacementScores.
//
// +kubebuilder:object:root=true
type AddOnPlacementScoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the scores.
	Items []AddOnPlacementScore `json:"items"`
}
