// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

// Sets that always exist.
const (
	// DefaultSet contains the clusters that are in no other set.
	DefaultSet = "default"
	// GlobalSet contains all clusters.
	GlobalSet = "global"
)

// AutoUpdateAnnotation with the value false on a set that always exists keeps changes of its
// spec.
const AutoUpdateAnnotation = clusterv1.GroupName + "/autoupdate"

// ConditionEmpty of a ManagedClusterSet is False if it contains clusters; the message is their
// number.
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

	// spec selects the clusters of the set. Default: those with its label.
	// +kubebuilder:default={clusterSelector: {selectorType: ExclusiveClusterSetLabel}}
	// +optional
	Spec ManagedClusterSetSpec `json:"spec,omitzero"`

	// status is whether the set contains clusters.
	// +optional
	Status ManagedClusterSetStatus `json:"status,omitzero"`
}

// ManagedClusterSetSpec selects the clusters of a set.
type ManagedClusterSetSpec struct {
	// clusterSelector selects the clusters of the set.
	// +kubebuilder:default={selectorType: ExclusiveClusterSetLabel}
	// +optional
	ClusterSelector ManagedClusterSelector `json:"clusterSelector,omitzero"`

	// managedNamespaces are required on each cluster of the set.
	// +listType=map
	// +listMapKey=name
	// +optional
	ManagedNamespaces []ManagedNamespaceConfig `json:"managedNamespaces,omitempty"`
}

// SelectorType is how the clusters of a set are selected.
//
// +kubebuilder:validation:Enum=ExclusiveClusterSetLabel;LabelSelector
type SelectorType string

const (
	// ExclusiveClusterSetLabel selects the clusters whose clusterset label is the name of the set.
	// A cluster is in one such set.
	ExclusiveClusterSetLabel SelectorType = "ExclusiveClusterSetLabel"
	// LabelSelector selects the clusters that a label selector matches.
	LabelSelector SelectorType = "LabelSelector"
)

// ManagedClusterSelector selects the clusters of a set.
type ManagedClusterSelector struct {
	// selectorType is ExclusiveClusterSetLabel or LabelSelector. Default ExclusiveClusterSetLabel.
	// +kubebuilder:default=ExclusiveClusterSetLabel
	SelectorType SelectorType `json:"selectorType"`

	// labelSelector matches labels of ManagedClusters, for type LabelSelector. If unset, matches
	// all.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// ManagedNamespaceConfig is a namespace that is required on clusters.
type ManagedNamespaceConfig struct {
	// name of the namespace.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
}

// ManagedClusterSetStatus is whether a set contains clusters.
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

	Items []ManagedClusterSet `json:"items"`
}
