// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AppliedManifestWorkFinalizer is on every AppliedManifestWork. The agent removes it when the
// objects that must be deleted are gone.
const AppliedManifestWorkFinalizer = "cluster.open-cluster-management.io/applied-manifest-work-cleanup"

// AppliedManifestWork owns the objects on a cluster that were applied for a ManifestWork of a hub.
// Its name is the hash of the hub's URL, a hyphen and the name of the ManifestWork.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
type AppliedManifestWork struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec identifies the ManifestWork.
	// +optional
	Spec AppliedManifestWorkSpec `json:"spec,omitzero"`

	// status lists the applied objects.
	// +optional
	Status AppliedManifestWorkStatus `json:"status,omitzero"`
}

// AppliedManifestWorkSpec identifies the ManifestWork. The agent writes it.
type AppliedManifestWorkSpec struct {
	// hubHash is the SHA-256 of the hub's URL, as 64 hexadecimal digits.
	HubHash string `json:"hubHash"`

	// agentID identifies the agent. Each agent of a cluster handles only AppliedManifestWorks with
	// its own ID.
	// +optional
	AgentID string `json:"agentID,omitempty"`

	// manifestWorkName is the name of the ManifestWork.
	ManifestWorkName string `json:"manifestWorkName"`
}

// AppliedManifestWorkStatus lists the applied objects.
type AppliedManifestWorkStatus struct {
	// appliedResources are the objects that have, or can have, this object as an owner.
	// +optional
	AppliedResources []AppliedManifestResourceMeta `json:"appliedResources,omitempty"`

	// evictionStartTime is since when the ManifestWork does not exist. After a grace period the
	// agent removes all objects that this one owns.
	// +optional
	EvictionStartTime *metav1.Time `json:"evictionStartTime,omitempty"`
}

// AppliedManifestResourceMeta identifies an object.
type AppliedManifestResourceMeta struct {
	// group is the API group; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`
	// version in the manifest.
	Version string `json:"version"`
	// resource is the plural name of the kind.
	Resource string `json:"resource"`
	// name of the object.
	Name string `json:"name"`
	// namespace of the object; empty if cluster-scoped.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// uid of the object, once known.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// run records the run of an object that runs to completion, such as a Job. Not an upstream
	// field.
	// +optional
	Run AppliedManifestResourceRun `json:"run,omitzero"`
}

// AppliedManifestResourceRun records the run of an object that runs to completion. If the object
// disappears from the cluster, the agent does not run it again.
type AppliedManifestResourceRun struct {
	// manifestHash is the hash of the kind and spec that ran, without ttlSecondsAfterFinished. The
	// agent runs the manifest again only if its hash differs.
	// +optional
	ManifestHash string `json:"manifestHash,omitempty"`
	// result is Complete or Failed. If unset, the agent did not see the run end.
	// +optional
	Result string `json:"result,omitempty"`
	// reason for the result, as the controller of the object reported it.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// AppliedManifestWorkList is a list of AppliedManifestWorks.
//
// +kubebuilder:object:root=true
type AppliedManifestWorkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AppliedManifestWork `json:"items"`
}
