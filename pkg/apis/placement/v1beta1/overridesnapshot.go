// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// ParentOverrideLabel is on an override snapshot. Its value is the name of the override.
	ParentOverrideLabel = KeyPrefix + "parent-resource-override"
	// OverrideIndexLabel is on an override snapshot. Its value is the index, from 0.
	OverrideIndexLabel = KeyPrefix + "override-index"
)

// OverrideSnapshotName returns the name of the snapshot of an override with an index.
func OverrideSnapshotName(override string, index int) string {
	return override + "-" + strconv.Itoa(index)
}

// ClusterResourceOverrideSnapshot is a revision of a ClusterResourceOverride. The hub writes it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
type ClusterResourceOverrideSnapshot struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the revision. Immutable.
	//
	// +required
	Spec ClusterResourceOverrideSnapshotSpec `json:"spec"`
}

// ClusterResourceOverrideSnapshotList is a list of ClusterResourceOverrideSnapshots.
//
// +kubebuilder:object:root=true
type ClusterResourceOverrideSnapshotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourceOverrideSnapshot `json:"items"`
}

// ClusterResourceOverrideSnapshotSpec is a revision of a ClusterResourceOverride.
type ClusterResourceOverrideSnapshotSpec struct {
	// overrideSpec is the override's spec.
	//
	// +required
	OverrideSpec ClusterResourceOverrideSpec `json:"overrideSpec"`

	// overrideHash is the SHA-256 of the spec, as hexadecimal text.
	//
	// +required
	OverrideHash []byte `json:"overrideHash"`
}

// ResourceOverrideSnapshot is a revision of a ResourceOverride. The hub writes it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
type ResourceOverrideSnapshot struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the revision. Immutable.
	//
	// +required
	Spec ResourceOverrideSnapshotSpec `json:"spec"`
}

// ResourceOverrideSnapshotList is a list of ResourceOverrideSnapshots.
//
// +kubebuilder:object:root=true
type ResourceOverrideSnapshotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceOverrideSnapshot `json:"items"`
}

// ResourceOverrideSnapshotSpec is a revision of a ResourceOverride.
type ResourceOverrideSnapshotSpec struct {
	// overrideSpec is the override's spec.
	//
	// +required
	OverrideSpec ResourceOverrideSpec `json:"overrideSpec"`

	// overrideHash is the SHA-256 of the spec, as hexadecimal text.
	//
	// +required
	OverrideHash []byte `json:"overrideHash"`
}
