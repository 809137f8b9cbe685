// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ClusterResourceEnvelope holds cluster-scoped objects that take effect on members only, not on the
// hub.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
type ClusterResourceEnvelope struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// data holds 1 to 50 objects under arbitrary keys. None can be namespaced.
	//
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=50
	Data map[string]EnvelopedObject `json:"data"`
}

// ClusterResourceEnvelopeList is a list of ClusterResourceEnvelopes.
//
// +kubebuilder:object:root=true
type ClusterResourceEnvelopeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourceEnvelope `json:"items"`
}

// ResourceEnvelope holds objects of its namespace that take effect on members only, not on the hub.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
type ResourceEnvelope struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// data holds 1 to 50 objects under arbitrary keys. All must be in the namespace of the
	// envelope.
	//
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=50
	Data map[string]EnvelopedObject `json:"data"`
}

// ResourceEnvelopeList is a list of ResourceEnvelopes.
//
// +kubebuilder:object:root=true
type ResourceEnvelopeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceEnvelope `json:"items"`
}

// EnvelopedObject is a complete Kubernetes object as JSON, which the API server does not validate.
//
// +kubebuilder:pruning:PreserveUnknownFields
type EnvelopedObject struct {
	// The JSON of this struct is the object itself.
	runtime.RawExtension `json:",inline"`
}
