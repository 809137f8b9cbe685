// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// ParentOverrideLabel is on an override snapshot: the override's name.
	ParentOverrideLabel = KeyPrefix + "parent-resource-override"
	// OverrideIndexLabel is on an override snapshot: its index, from 0.
	OverrideIndexLabel = KeyPrefix + "override-index"
)

// OverrideSnapshotName names the snapshot of an override with an index.
func OverrideSnapshotName(override string, index int) string {
	return override + "-" + strconv.Itoa(index)
}

// ClusterResourceOverrideSnapshot is a ClusterResourceOverride as it was.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
type ClusterResourceOverrideSnapshot struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the override; it is never changed.
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

// ClusterResourceOverrideSnapshotSpec is a ClusterResourceOverride as it was.
type ClusterResourceOverrideSnapshotSpec struct {
	// overrideSpec is the override's spec.
	//
	// +required
	OverrideSpec ClusterResourceOverrideSpec `json:"overrideSpec"`

	// overrideHash tells one spec from another: the text, in hexadecimal, of
	// its SHA-256.
	//
	// +required
	OverrideHash []byte `json:"overrideHash"`
}

// ResourceOverrideSnapshot is a ResourceOverride as it was.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
type ResourceOverrideSnapshot struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the override; it is never changed.
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

// ResourceOverrideSnapshotSpec is a ResourceOverride as it was.
type ResourceOverrideSnapshotSpec struct {
	// overrideSpec is the override's spec.
	//
	// +required
	OverrideSpec ResourceOverrideSpec `json:"overrideSpec"`

	// overrideHash tells one spec from another: the text, in hexadecimal, of
	// its SHA-256.
	//
	// +required
	OverrideHash []byte `json:"overrideHash"`
}
