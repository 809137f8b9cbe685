// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
)

// ClusterManagementAddOn describes an add-on, its configurations and the clusters that get it. Its
// name is the name of the add-on.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=cma;cmas
// +kubebuilder:unservedversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="DISPLAY NAME",type="string",JSONPath=`.spec.addOnMeta.displayName`
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
	AddOnMeta addonv1alpha1.AddOnMeta `json:"addOnMeta,omitzero"`
	// defaultConfigs are the kinds of configurations that the add-on has, with the configuration of
	// clusters that have no other one. If unset, none.
	// +listType=map
	// +listMapKey=group
	// +listMapKey=resource
	// +optional
	DefaultConfigs []addonv1alpha1.AddOnConfig `json:"defaultConfigs,omitempty"`
	// installStrategy chooses the clusters that get the add-on.
	// +kubebuilder:default={type: Manual}
	// +optional
	InstallStrategy addonv1alpha1.InstallStrategy `json:"installStrategy,omitzero"`
}

// ClusterManagementAddOnStatus is the observed state of an add-on.
type ClusterManagementAddOnStatus struct {
	// defaultConfigReferences are the default configurations.
	// +optional
	DefaultConfigReferences []addonv1alpha1.DefaultConfigReference `json:"defaultConfigReferences,omitempty"`
	// installProgressions are the rollouts of the install strategy, one for each Placement.
	// +optional
	InstallProgressions []addonv1alpha1.InstallProgression `json:"installProgressions,omitempty"`
}

// ClusterManagementAddOnList is a list of ClusterManagementAddOns.
//
// +kubebuilder:object:root=true
type ClusterManagementAddOnList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterManagementAddOn `json:"items"`
}
