// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// ResourceIndexLabel is on a resource snapshot: the index of its group,
	// from 0.
	ResourceIndexLabel = KeyPrefix + "resource-index"
	// ResourceHashAnnotation is on the master of a group: the SHA-256, in
	// hexadecimal, of all that the group holds.
	ResourceHashAnnotation = KeyPrefix + "resource-hash"
	// NumberOfResourceSnapshotsAnnotation is on the master: how many snapshots
	// the group has, the master included.
	NumberOfResourceSnapshotsAnnotation = KeyPrefix + "number-of-resource-snapshots"
	// ConfigMapEnvelopeAnnotation makes an envelope of a ConfigMap, with the value
	// "true", if the gateway was told to take such for envelopes.
	ConfigMapEnvelopeAnnotation = KeyPrefix + "envelope-configmap"
	// NumberOfEnvelopedObjectsAnnotation is on the master: how many envelopes
	// the group holds.
	NumberOfEnvelopedObjectsAnnotation = KeyPrefix + "number-of-enveloped-object"
	// NextSnapshotCandidateTimeAnnotation is on the master: when (RFC 3339) a
	// change that calls for a new group was first seen.
	NextSnapshotCandidateTimeAnnotation = KeyPrefix + "next-resource-snapshot-candidate-detection-time"
	// SubindexAnnotation is on every snapshot of a group but the master: its
	// place in the group, from 0.
	SubindexAnnotation = KeyPrefix + "subindex-of-resource-snapshot"
)

// HelmChartAnnotation makes of a ConfigMap or a Secret the description of a Helm chart,
// on a gateway that is told to render such: members get what the chart renders to for
// them, and not the object itself. Its value is the name of the release. Whoever writes
// it needs the verb RenderVerb on the object.
const HelmChartAnnotation = "fleetgate.io/helm-chart"

// RenderVerb is the verb, on a ConfigMap or Secret, that lets somebody have a chart
// rendered from it.
const RenderVerb = "render"

// ResourceSnapshotName names the master of the group with an index.
func ResourceSnapshotName(placement string, index int) string {
	return placement + "-" + strconv.Itoa(index) + "-snapshot"
}

// ResourceSubSnapshotName names a further snapshot of the group with an index.
func ResourceSubSnapshotName(placement string, index, subindex int) string {
	return placement + "-" + strconv.Itoa(index) + "-" + strconv.Itoa(subindex)
}

// ResourceSnapshotObject is a resource snapshot of either scope, as controllers
// see it.
//
// +kubebuilder:object:generate=false
type ResourceSnapshotObject interface {
	metav1.Object
	runtime.Object
	// GetSpec returns the spec itself, not a copy.
	GetSpec() *ResourceSnapshotSpec
	// GetStatus returns the status itself, not a copy.
	GetStatus() *ResourceSnapshotStatus
}

var (
	_ ResourceSnapshotObject = (*ClusterResourceSnapshot)(nil)
	_ ResourceSnapshotObject = (*ResourceSnapshot)(nil)
)

// ClusterResourceSnapshot holds resources that a ClusterResourcePlacement
// selects, as they were. Snapshots of one index form a group: what does not
// fit into the master is in the others.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=crs,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Gen",type=string,JSONPath=`.metadata.generation`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterResourceSnapshot struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the resources; it is never changed.
	//
	// +required
	Spec ResourceSnapshotSpec `json:"spec"`

	// status of the snapshot.
	//
	// +optional
	Status ResourceSnapshotStatus `json:"status,omitzero"`
}

// GetSpec returns the spec itself, not a copy.
func (s *ClusterResourceSnapshot) GetSpec() *ResourceSnapshotSpec { return &s.Spec }

// GetStatus returns the status itself, not a copy.
func (s *ClusterResourceSnapshot) GetStatus() *ResourceSnapshotStatus { return &s.Status }

// ClusterResourceSnapshotList is a list of ClusterResourceSnapshots.
//
// +kubebuilder:object:root=true
type ClusterResourceSnapshotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourceSnapshot `json:"items"`
}

// ResourceSnapshot holds resources that a ResourcePlacement selects, as they
// were. Snapshots of one index form a group: what does not fit into the master
// is in the others.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=rs,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Gen",type=string,JSONPath=`.metadata.generation`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ResourceSnapshot struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the resources; it is never changed.
	//
	// +required
	Spec ResourceSnapshotSpec `json:"spec"`

	// status of the snapshot.
	//
	// +optional
	Status ResourceSnapshotStatus `json:"status,omitzero"`
}

// GetSpec returns the spec itself, not a copy.
func (s *ResourceSnapshot) GetSpec() *ResourceSnapshotSpec { return &s.Spec }

// GetStatus returns the status itself, not a copy.
func (s *ResourceSnapshot) GetStatus() *ResourceSnapshotStatus { return &s.Status }

// ResourceSnapshotList is a list of ResourceSnapshots.
//
// +kubebuilder:object:root=true
type ResourceSnapshotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceSnapshot `json:"items"`
}

// ResourceSnapshotSpec is resources as they were.
type ResourceSnapshotSpec struct {
	// selectedResources are the objects, ready to be applied on a member. The
	// API server refuses null here: no resources are an empty list, not nil.
	//
	// +required
	SelectedResources []Manifest `json:"selectedResources"`
}

// Manifest is a whole Kubernetes object as JSON.
//
// +kubebuilder:validation:XEmbeddedResource
// +kubebuilder:pruning:PreserveUnknownFields
type Manifest struct {
	// The JSON of this struct is the object itself.
	runtime.RawExtension `json:",inline"`
}

// ResourceSnapshotStatus is the status of a resource snapshot.
type ResourceSnapshotStatus struct {
	// conditions of the snapshot.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
