// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

// Sets that are always there.
const (
	// DefaultSet is of the clusters that nobody put into another set.
	DefaultSet = "default"
	// GlobalSet is of all clusters.
	GlobalSet = "global"
)

// AutoUpdateAnnotation, on one of the sets that are always there, with the value false, has
// changes of its spec stay.
const AutoUpdateAnnotation = clusterv1.GroupName + "/autoupdate"

// ConditionEmpty of a ManagedClusterSet is False when there are clusters in it, and the
// message says how many.
const ConditionEmpty = "ClusterSetEmpty"

// Reasons of ClusterSetEmpty.
const (
	// ReasonNoClusterMatched goes with True.
	ReasonNoClusterMatched = "NoClusterMatched"
	// ReasonClustersSelected goes with False.
	ReasonClustersSelected = "ClustersSelected"
)

// ManagedClusterSet is a set of clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=mclset;mclsets
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Empty",type="string",JSONPath=`.status.conditions[?(@.type=="ClusterSetEmpty")].status`
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=`.metadata.creationTimestamp`
type ManagedClusterSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which clusters are in the set. By default, those with its label.
	// +kubebuilder:default={clusterSelector: {selectorType: ExclusiveClusterSetLabel}}
	// +optional
	Spec ManagedClusterSetSpec `json:"spec,omitzero"`

	// status says whether there are any.
	// +optional
	Status ManagedClusterSetStatus `json:"status,omitzero"`
}

// ManagedClusterSetSpec says which clusters are in a set.
type ManagedClusterSetSpec struct {
	// clusterSelector says which clusters are in the set.
	// +kubebuilder:default={selectorType: ExclusiveClusterSetLabel}
	// +optional
	ClusterSelector ManagedClusterSelector `json:"clusterSelector,omitzero"`

	// managedNamespaces are wanted on each cluster of the set.
	// +listType=map
	// +listMapKey=name
	// +optional
	ManagedNamespaces []ManagedNamespaceConfig `json:"managedNamespaces,omitempty"`
}

// SelectorType is a way to say which clusters are in a set.
//
// +kubebuilder:validation:Enum=ExclusiveClusterSetLabel;LabelSelector
type SelectorType string

const (
	// ExclusiveClusterSetLabel is for the clusters whose label of sets is the set's name:
	// a cluster is in one such set.
	ExclusiveClusterSetLabel SelectorType = "ExclusiveClusterSetLabel"
	// LabelSelector is for the clusters that a selector selects.
	LabelSelector SelectorType = "LabelSelector"
)

// ManagedClusterSelector says which clusters are in a set.
type ManagedClusterSelector struct {
	// selectorType is ExclusiveClusterSetLabel, which is the default, or LabelSelector.
	// +kubebuilder:default=ExclusiveClusterSetLabel
	SelectorType SelectorType `json:"selectorType"`

	// labelSelector is over the labels of ManagedClusters, with type LabelSelector. Empty:
	// all of them.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// ManagedNamespaceConfig is a namespace that is wanted on clusters.
type ManagedNamespaceConfig struct {
	// name is the namespace's.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
}

// ManagedClusterSetStatus says whether there are clusters in a set.
type ManagedClusterSetStatus struct {
	// conditions has ClusterSetEmpty.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ManagedClusterSetList is a list of ManagedClusterSets.
//
// +kubebuilder:object:root=true
type ManagedClusterSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the sets.
	Items []ManagedClusterSet `json:"items"`
}
