// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AppliedManifestWorkFinalizer is on every AppliedManifestWork. The agent takes it off when
// the objects that have to go are gone.
const AppliedManifestWorkFinalizer = "cluster.open-cluster-management.io/applied-manifest-work-cleanup"

// AppliedManifestWork stands on a cluster for a ManifestWork of a hub, and owns what was
// brought of it. Its name is the hash of the hub's URL, a hyphen and the ManifestWork's
// name.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
type AppliedManifestWork struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which ManifestWork it is.
	// +optional
	Spec AppliedManifestWorkSpec `json:"spec,omitzero"`

	// status lists what was brought.
	// +optional
	Status AppliedManifestWorkStatus `json:"status,omitzero"`
}

// AppliedManifestWorkSpec says which ManifestWork it is. The agent writes it.
type AppliedManifestWorkSpec struct {
	// hubHash is the SHA-256 of the hub's URL, as 64 hexadecimal digits.
	HubHash string `json:"hubHash"`

	// agentID tells the agents of one cluster apart: each looks after the
	// AppliedManifestWorks that have its own.
	// +optional
	AgentID string `json:"agentID,omitempty"`

	// manifestWorkName is the ManifestWork's name.
	ManifestWorkName string `json:"manifestWorkName"`
}

// AppliedManifestWorkStatus lists what was brought.
type AppliedManifestWorkStatus struct {
	// appliedResources are the objects that have this one as an owner, or may have it.
	// +optional
	AppliedResources []AppliedManifestResourceMeta `json:"appliedResources,omitempty"`

	// evictionStartTime is since when there has been no ManifestWork for this. After a
	// while all that it owns is removed.
	// +optional
	EvictionStartTime *metav1.Time `json:"evictionStartTime,omitempty"`
}

// AppliedManifestResourceMeta names an object.
type AppliedManifestResourceMeta struct {
	// group is the API group; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`
	// version is the one that the manifest has.
	Version string `json:"version"`
	// resource is the kind's name in URLs.
	Resource string `json:"resource"`
	// name is the object's.
	Name string `json:"name"`
	// namespace is the object's. Empty: it is in none.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// uid is the object's, once it is known.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// run is what is known of an object that runs to completion, as a Job does. It is
	// fleetgate's own.
	// +optional
	Run AppliedManifestResourceRun `json:"run,omitzero"`
}

// AppliedManifestResourceRun is what is known of an object that runs to completion. With it the
// object is not run again when it is gone from the cluster.
type AppliedManifestResourceRun struct {
	// manifestHash is the hash of what the manifest has run: its kind and spec, without the time
	// after which it is deleted. The agent runs another hash again.
	// +optional
	ManifestHash string `json:"manifestHash,omitempty"`
	// result is Complete or Failed. Empty: it was not seen to end.
	// +optional
	Result string `json:"result,omitempty"`
	// reason is why it ended, as its controller said.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// AppliedManifestWorkList is a list of AppliedManifestWorks.
//
// +kubebuilder:object:root=true
type AppliedManifestWorkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the works.
	Items []AppliedManifestWork `json:"items"`
}
