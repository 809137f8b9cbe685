// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AppliedWork lists the objects on a member that belong to one Work, and is their owner. It has the
// Work's name. The agent writes it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
type AppliedWork struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec identifies the Work on the hub.
	//
	// +required
	Spec AppliedWorkSpec `json:"spec"`

	// status lists the applied objects.
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

// AppliedWorkSpec identifies a Work on the hub.
type AppliedWorkSpec struct {
	// workName is the name of the Work.
	//
	// +required
	WorkName string `json:"workName"`

	// workNamespace is the namespace of the Work on the hub.
	//
	// +required
	WorkNamespace string `json:"workNamespace"`
}

// AppliedWorkStatus lists the objects that a Work applied.
type AppliedWorkStatus struct {
	// appliedResources are the objects that belong to the Work.
	//
	// +optional
	AppliedResources []AppliedResourceMeta `json:"appliedResources,omitempty"`
}

// AppliedResourceMeta identifies an applied object.
type AppliedResourceMeta struct {
	// The object.
	WorkResourceIdentifier `json:",inline"`

	// uid of the object. It prevents the deletion of another object of the same name.
	//
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// run records the run of an object that runs to completion, such as a Job. Unset for other
	// objects, and for objects that an earlier version of the agent applied.
	//
	// +optional
	Run AppliedResourceRun `json:"run,omitzero"`
}

// AppliedResourceRun records the run of an object that runs to completion. If the object disappears
// from the member, the agent does not run it again.
type AppliedResourceRun struct {
	// manifestHash is the hash of the kind and spec that ran, without ttlSecondsAfterFinished. The
	// agent runs the manifest again only if its hash differs.
	//
	// +optional
	ManifestHash string `json:"manifestHash,omitempty"`

	// result is Complete or Failed. If unset, the agent did not see the run end.
	//
	// +optional
	Result string `json:"result,omitempty"`

	// reason for the result, as the controller of the object reported it.
	//
	// +optional
	Reason string `json:"reason,omitempty"`
}
