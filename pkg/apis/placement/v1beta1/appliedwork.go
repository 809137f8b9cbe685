// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AppliedWork is, on the member, the owner of all that one Work has applied
// there. It has the Work's name.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
type AppliedWork struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec names the Work.
	//
	// +required
	Spec AppliedWorkSpec `json:"spec"`

	// status lists what was applied.
	//
	// +optional
	Status AppliedWorkStatus `json:"status,omitzero"`
}

// AppliedWorkList is a list of AppliedWorks.
//
// +kubebuilder:object:root=true
type AppliedWorkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AppliedWork `json:"items"`
}

// AppliedWorkSpec names a Work on the hub.
type AppliedWorkSpec struct {
	// workName is the Work's name.
	//
	// +required
	WorkName string `json:"workName"`

	// workNamespace is the Work's namespace on the hub.
	//
	// +required
	WorkNamespace string `json:"workNamespace"`
}

// AppliedWorkStatus lists what a Work has applied.
type AppliedWorkStatus struct {
	// appliedResources are the objects that are there because of the Work.
	//
	// +optional
	AppliedResources []AppliedResourceMeta `json:"appliedResources,omitempty"`
}

// AppliedResourceMeta is an object that was applied.
type AppliedResourceMeta struct {
	// The object.
	WorkResourceIdentifier `json:",inline"`

	// uid of the object, so that another of the same name is not deleted for
	// it.
	//
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// run is what is known of an object that runs to completion, as a Job does. Empty for other
	// objects, and for what an agent of an earlier version applied.
	//
	// +optional
	Run AppliedResourceRun `json:"run,omitzero"`
}

// AppliedResourceRun is what is known of an object that runs to completion. With it the object is not
// run again when it is gone from the member.
type AppliedResourceRun struct {
	// manifestHash is the hash of what the manifest has run: its kind and spec, without the time after
	// which it is deleted. The agent runs another hash again.
	//
	// +optional
	ManifestHash string `json:"manifestHash,omitempty"`

	// result is Complete or Failed. Empty: it was not seen to end.
	//
	// +optional
	Result string `json:"result,omitempty"`

	// reason is why it ended, as its controller said.
	//
	// +optional
	Reason string `json:"reason,omitempty"`
}
