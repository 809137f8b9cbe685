// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterGroup selects and counts Clusters of its namespace by label.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories=fleet
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:JSONPath=`.status.display.readyClusters`,name="Clusters-Ready",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.display.readyBundles`,name="Bundles-Ready",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Ready")].message`,name="Status",type=string
type ClusterGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec selects the clusters.
	// +optional
	Spec ClusterGroupSpec `json:"spec,omitzero"`

	// status counts the clusters.
	// +optional
	Status ClusterGroupStatus `json:"status,omitzero"`
}

// ClusterGroupSpec selects the clusters of a group.
type ClusterGroupSpec struct {
	// selector matches the labels of the Clusters. Null matches none, an empty selector all.
	// +nullable
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// ClusterGroupStatus counts the clusters of a group.
type ClusterGroupStatus struct {
	// clusterCount is the number of clusters in the group.
	// +optional
	ClusterCount int `json:"clusterCount"`

	// nonReadyClusterCount is the number of clusters that are not ready.
	// +optional
	NonReadyClusterCount int `json:"nonReadyClusterCount"`

	// nonReadyClusters are the names of up to 10 of these.
	// +nullable
	// +optional
	NonReadyClusters []string `json:"nonReadyClusters,omitempty"`

	// conditions has Ready.
	// +optional
	Conditions []GenericCondition `json:"conditions,omitempty"`

	// summary is not written.
	// +optional
	Summary DeploymentSummary `json:"summary,omitzero"`

	// display has values for the columns of kubectl get.
	// +optional
	Display ClusterGroupDisplay `json:"display,omitzero"`

	// resourceCounts is not written.
	// +optional
	ResourceCounts ResourceCounts `json:"resourceCounts,omitzero"`
}

// ClusterGroupDisplay has values for the columns of kubectl get.
type ClusterGroupDisplay struct {
	// readyClusters is how many clusters are ready, such as 1/2.
	// +nullable
	// +optional
	ReadyClusters string `json:"readyClusters,omitempty"`

	// readyBundles is not written.
	// +nullable
	// +optional
	ReadyBundles string `json:"readyBundles,omitempty"`

	// state is not written.
	// +nullable
	// +optional
	State string `json:"state,omitempty"`
}

// ClusterGroupList is a list of ClusterGroups.
//
// +kubebuilder:object:root=true
type ClusterGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterGroup `json:"items"`
}
