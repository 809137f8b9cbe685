// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
)

// ClusterManagementAddOn describes an add-on, its configurations and the clusters that get it. Its
// name is the name of the add-on.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=cma;cmas
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="DISPLAY NAME",type="string",JSONPath=`.spec.addOnMeta.displayName`
// +kubebuilder:printcolumn:name="CRD NAME",type="string",JSONPath=`.spec.addOnConfiguration.crdName`
type ClusterManagementAddOn struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec ClusterManagementAddOnSpec `json:"spec"`
	// status is the observed state.
	// +optional
	Status ClusterManagementAddOnStatus `json:"status,omitzero"`
}

// ClusterManagementAddOnSpec describes an add-on.
type ClusterManagementAddOnSpec struct {
	// addOnMeta describes the add-on to people.
	// +optional
	AddOnMeta AddOnMeta `json:"addOnMeta,omitzero"`
	// addOnConfiguration is replaced by supportedConfigs.
	// +optional
	AddOnConfiguration ConfigCoordinates `json:"addOnConfiguration,omitzero"`
	// supportedConfigs are the kinds of configurations that the add-on has. If unset, none.
	// +listType=map
	// +listMapKey=group
	// +listMapKey=resource
	// +optional
	SupportedConfigs []ConfigMeta `json:"supportedConfigs,omitempty"`
	// installStrategy chooses the clusters that get the add-on.
	// +kubebuilder:default={type: Manual}
	// +optional
	InstallStrategy InstallStrategy `json:"installStrategy,omitzero"`
}

// AddOnMeta describes an add-on to people.
type AddOnMeta struct {
	// displayName is the name of the add-on for people.
	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// description is what the add-on does.
	// +optional
	Description string `json:"description,omitempty"`
}

// ConfigCoordinates name the kind of a configuration and one object of it.
type ConfigCoordinates struct {
	// crdName is the name of the kind's CustomResourceDefinition.
	// +optional
	CRDName string `json:"crdName,omitempty"`
	// crName is the name of the configuration, in the namespace of each cluster.
	// +optional
	CRName string `json:"crName,omitempty"`
	// lastObservedGeneration is the generation of the configuration that the add-on uses.
	// +optional
	LastObservedGeneration int64 `json:"lastObservedGeneration,omitempty"`
}

// ConfigMeta is a kind of configurations, and the default one.
type ConfigMeta struct {
	ConfigGroupResource `json:",inline"`
	// defaultConfig is the configuration of clusters that have no other one. If unset, such clusters
	// have none.
	// +optional
	DefaultConfig *ConfigReferent `json:"defaultConfig,omitempty"`
}

// ConfigGroupResource is a kind of configurations.
type ConfigGroupResource struct {
	// group is the API group. If empty, the core group.
	// +kubebuilder:default=""
	// +optional
	Group string `json:"group"`
	// resource is the plural name of the kind.
	// +kubebuilder:validation:MinLength=1
	// +required
	Resource string `json:"resource"`
}

// ConfigReferent names a configuration.
type ConfigReferent struct {
	// namespace of the configuration. Empty for a cluster-scoped one.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the configuration.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`
}

// AddOnConfig names a configuration and its kind.
type AddOnConfig struct {
	ConfigGroupResource `json:",inline"`
	ConfigReferent      `json:",inline"`
}

// Types of install strategies.
const (
	// InstallManual leaves the creation of ManagedClusterAddOns to people and managers.
	InstallManual = "Manual"
	// InstallPlacements creates a ManagedClusterAddOn for each cluster that Placements select.
	InstallPlacements = "Placements"
)

// InstallStrategy chooses the clusters that get an add-on.
type InstallStrategy struct {
	// type is Manual, which leaves the creation of ManagedClusterAddOns to others, or Placements,
	// which creates and deletes them as the Placements decide. Default Manual.
	// +kubebuilder:default=Manual
	// +kubebuilder:validation:Enum=Manual;Placements
	// +optional
	Type string `json:"type"`
	// placements select the clusters, for type Placements. If several select a cluster, the last
	// one sets its configurations.
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +optional
	Placements []PlacementStrategy `json:"placements,omitempty"`
}

// PlacementRef names a Placement.
type PlacementRef struct {
	// namespace of the Placement.
	// +kubebuilder:validation:MinLength=1
	// +required
	Namespace string `json:"namespace"`
	// name of the Placement.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`
}

// PlacementStrategy is a Placement, with the configurations of its clusters and their rollout.
type PlacementStrategy struct {
	PlacementRef `json:",inline"`
	// configs replace the default configurations of the same kind.
	// +optional
	Configs []AddOnConfig `json:"configs,omitempty"`
	// rolloutStrategy is the order and pace of changes of configurations.
	// +kubebuilder:default={type: All}
	// +optional
	RolloutStrategy clusterv1alpha1.RolloutStrategy `json:"rolloutStrategy,omitzero"`
}

// ClusterManagementAddOnStatus is the observed state of an add-on.
type ClusterManagementAddOnStatus struct {
	// defaultconfigReferences are the default configurations.
	// +optional
	DefaultConfigReferences []DefaultConfigReference `json:"defaultconfigReferences,omitempty"`
	// installProgressions are the rollouts of the install strategy, one for each Placement.
	// +optional
	InstallProgressions []InstallProgression `json:"installProgressions,omitempty"`
}

// DefaultConfigReference is a default configuration.
type DefaultConfigReference struct {
	ConfigGroupResource `json:",inline"`
	// desiredConfig is the configuration and its hash. The add-on's manager writes the hash.
	// +optional
	DesiredConfig *ConfigSpecHash `json:"desiredConfig,omitempty"`
}

// ConfigSpecHash names a configuration and a version of it.
type ConfigSpecHash struct {
	ConfigReferent `json:",inline"`
	// specHash is the hash of the configuration's content. If empty, it is not known yet.
	// +optional
	SpecHash string `json:"specHash,omitempty"`
}

// InstallProgression is the rollout to the clusters of one Placement.
type InstallProgression struct {
	PlacementRef `json:",inline"`
	// configReferences are the configurations of the clusters.
	// +optional
	ConfigReferences []InstallConfigReference `json:"configReferences,omitempty"`
	// conditions of the rollout: Progressing.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// InstallConfigReference is a configuration of an install strategy.
type InstallConfigReference struct {
	ConfigGroupResource `json:",inline"`
	// desiredConfig is the configuration and its hash. The add-on's manager writes the hash.
	// +optional
	DesiredConfig *ConfigSpecHash `json:"desiredConfig,omitempty"`
	// lastKnownGoodConfig is the last one that all clusters had without an error.
	// +optional
	LastKnownGoodConfig *ConfigSpecHash `json:"lastKnownGoodConfig,omitempty"`
	// lastAppliedConfig is the last one that all clusters had.
	// +optional
	LastAppliedConfig *ConfigSpecHash `json:"lastAppliedConfig,omitempty"`
}

// ClusterManagementAddOnList is a list of ClusterManagementAddOns.
//
// +kubebuilder:object:root=true
type ClusterManagementAddOnList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterManagementAddOn `json:"items"`
}
