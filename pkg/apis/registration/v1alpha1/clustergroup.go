// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterGroup selects Clusters of its namespace by label, and counts them.
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

	// spec is which clusters are in the group.
	// +optional
	Spec ClusterGroupSpec `json:"spec,omitzero"`

	// status counts the clusters of the group.
	// +optional
	Status ClusterGroupStatus `json:"status,omitzero"`
}

// ClusterGroupSpec is which clusters are in a group.
type ClusterGroupSpec struct {
	// selector is matched with the labels of the Clusters. Null selects none, an
	// empty one all.
	// +nullable
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// ClusterGroupStatus counts the clusters of a group.
type ClusterGroupStatus struct {
	// clusterCount is how many clusters the group has.
	// +optional
	ClusterCount int `json:"clusterCount"`

	// nonReadyClusterCount is how many of them are not ready.
	// +optional
	NonReadyClusterCount int `json:"nonReadyClusterCount"`

	// nonReadyClusters are the names of some of those.
	// +nullable
	// +optional
	NonReadyClusters []string `json:"nonReadyClusters,omitempty"`

	// conditions are about the group as a whole.
	// +optional
	Conditions []GenericCondition `json:"conditions,omitempty"`

	// summary adds up the clusters' summaries.
	// +optional
	Summary DeploymentSummary `json:"summary,omitzero"`

	// display are texts for the columns of kubectl get.
	// +optional
	Display ClusterGroupDisplay `json:"display,omitzero"`

	// resourceCounts adds up the clusters' counts.
	// +optional
	ResourceCounts ResourceCounts `json:"resourceCounts,omitzero"`
}

// ClusterGroupDisplay are texts for the columns of kubectl get.
type ClusterGroupDisplay struct {
	// readyClusters is how many clusters are ready, as "1/2".
	// +nullable
	// +optional
	ReadyClusters string `json:"readyClusters,omitempty"`

	// readyBundles is how many works are available, as "1/2".
	// +nullable
	// +optional
	ReadyBundles string `json:"readyBundles,omitempty"`

	// state is one word for the whole.
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

	// items are the groups.
	Items []ClusterGroup `json:"items"`
}
