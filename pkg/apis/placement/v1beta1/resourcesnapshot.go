// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// ResourceIndexLabel is on a resource snapshot. Its value is the index of its group, from 0.
	ResourceIndexLabel = KeyPrefix + "resource-index"
	// ResourceHashAnnotation is on the master of a group. Its value is the SHA-256, in hexadecimal,
	// of all resources in the group.
	ResourceHashAnnotation = KeyPrefix + "resource-hash"
	// NumberOfResourceSnapshotsAnnotation is on the master. Its value is how many snapshots the
	// group has, including the master.
	NumberOfResourceSnapshotsAnnotation = KeyPrefix + "number-of-resource-snapshots"
	// ConfigMapEnvelopeAnnotation with the value "true" makes a ConfigMap an envelope, if the
	// gateway is configured to treat ConfigMaps as envelopes.
	ConfigMapEnvelopeAnnotation = KeyPrefix + "envelope-configmap"
	// NumberOfEnvelopedObjectsAnnotation is on the master. Its value is how many envelopes the
	// group contains.
	NumberOfEnvelopedObjectsAnnotation = KeyPrefix + "number-of-enveloped-object"
	// NextSnapshotCandidateTimeAnnotation is on the master. Its value is when (RFC 3339) a change
	// that needs a new group was first observed.
	NextSnapshotCandidateTimeAnnotation = KeyPrefix + "next-resource-snapshot-candidate-detection-time"
	// SubindexAnnotation is on every snapshot of a group except the master. Its value is the
	// position in the group, from 0.
	SubindexAnnotation = KeyPrefix + "subindex-of-resource-snapshot"
)

// HelmChartAnnotation marks a ConfigMap or Secret as the description of a Helm chart, if the
// gateway is configured to render charts. Members get the rendered objects instead of the ConfigMap
// or Secret. Its value is the release name. Its author needs the verb RenderVerb on the object.
const HelmChartAnnotation = "fleetgate.io/helm-chart"

// RenderVerb is the RBAC verb, on a ConfigMap or Secret, that allows a user to have a chart
// rendered from it.
const RenderVerb = "render"

// ResourceSnapshotName returns the name of the master of the group with an index.
func ResourceSnapshotName(placement string, index int) string {
	return placement + "-" + strconv.Itoa(index) + "-snapshot"
}

// ResourceSubSnapshotName returns the name of a further snapshot of the group with an index.
func ResourceSubSnapshotName(placement string, index, subindex int) string {
	return placement + "-" + strconv.Itoa(index) + "-" + strconv.Itoa(subindex)
}

// ResourceSnapshotObject is a resource snapshot of either scope.
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

// ClusterResourceSnapshot is a revision of resources that a ClusterResourcePlacement selects. The
// hub writes it. Snapshots with the same index form a group: resources that do not fit into the
// master are in the others.
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

	// spec is the resources. Immutable.
	//
	// +required
	Spec ResourceSnapshotSpec `json:"spec"`

	// status is not written.
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

// ResourceSnapshot is a revision of resources that a ResourcePlacement selects. The hub writes it.
// Snapshots with the same index form a group: resources that do not fit into the master are in the
// others.
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

	// spec is the resources. Immutable.
	//
	// +required
	Spec ResourceSnapshotSpec `json:"spec"`

	// status is not written.
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

// ResourceSnapshotSpec is a revision of resources.
type ResourceSnapshotSpec struct {
	// selectedResources are the objects, ready to be applied on a member. The API server rejects
	// null; use an empty list.
	//
	// +required
	SelectedResources []Manifest `json:"selectedResources"`
}

// Manifest is a complete Kubernetes object as JSON.
//
// +kubebuilder:validation:XEmbeddedResource
// +kubebuilder:pruning:PreserveUnknownFields
type Manifest struct {
	// The JSON of this struct is the object itself.
	runtime.RawExtension `json:",inline"`
}

// ResourceSnapshotStatus is the status of a resource snapshot.
type ResourceSnapshotStatus struct {
	// conditions are not written.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
