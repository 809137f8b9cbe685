// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
)

const (
	// ManifestWorkReplicaSetFinalizer is on every ManifestWorkReplicaSet until its ManifestWorks
	// are deleted.
	ManifestWorkReplicaSetFinalizer = "work.open-cluster-management.io/manifest-work-cleanup"
	// ReplicaSetLabel is on the ManifestWorks of a ManifestWorkReplicaSet. Its value is the
	// namespace, a dot and the name of the ManifestWorkReplicaSet.
	ReplicaSetLabel = "work.open-cluster-management.io/manifestworkreplicaset"
	// PlacementNameLabel is on the ManifestWorks of a ManifestWorkReplicaSet. Its value is the name
	// of the Placement.
	PlacementNameLabel = "work.open-cluster-management.io/placementname"
	// GivenAtAnnotation is on the ManifestWorks of a ManifestWorkReplicaSet. Its value is when (RFC
	// 3339) the ManifestWork got its current template. The progress deadline counts from there.
	GivenAtAnnotation = "fleetgate.io/given-at"
)

// Condition types of a ManifestWorkReplicaSet.
const (
	// ConditionPlacementVerified is True when its Placements exist and have selected clusters.
	ConditionPlacementVerified = "PlacementVerified"
	// ConditionPlacementRolledOut is True when all of these clusters have the current template and
	// report success.
	ConditionPlacementRolledOut = "PlacementRolledOut"
	// ConditionManifestworkApplied is True when all ManifestWorks are Available, and none is
	// Progressing or Degraded.
	ConditionManifestworkApplied = "ManifestworkApplied"
)

// Reasons of these conditions.
const (
	// ReasonAsExpected goes with True.
	ReasonAsExpected = "AsExpected"
	// ReasonNotAsExpected goes with False.
	ReasonNotAsExpected = "NotAsExpected"
	// ReasonPlacementDecisionNotFound goes with PlacementVerified=False: a Placement does not
	// exist.
	ReasonPlacementDecisionNotFound = "PlacementDecisionNotFound"
	// ReasonPlacementDecisionEmpty goes with False: no cluster was selected.
	ReasonPlacementDecisionEmpty = "PlacementDecisionEmpty"
	// ReasonProgressing and ReasonComplete go with PlacementRolledOut.
	ReasonProgressing = "Progressing"
	// ReasonComplete goes with PlacementRolledOut=True.
	ReasonComplete = "Complete"
	// ReasonProcessing goes with ManifestworkApplied=False: some are Progressing.
	ReasonProcessing = "Processing"
	// ReasonInvalidManifestWorkName goes with ManifestworkApplied=False: the namespace and name of
	// the ManifestWorkReplicaSet do not fit into a label value.
	ReasonInvalidManifestWorkName = "InvalidManifestWorkName"
)

// CascadeDeletionPolicy is the order of deletion of a ManifestWorkReplicaSet and its ManifestWorks.
//
// +kubebuilder:validation:Enum=Background;Foreground
type CascadeDeletionPolicy string

const (
	// CascadeBackground removes the ManifestWorkReplicaSet as soon as its ManifestWorks are being
	// deleted.
	CascadeBackground CascadeDeletionPolicy = "Background"
	// CascadeForeground keeps it until they are gone.
	CascadeForeground CascadeDeletionPolicy = "Foreground"
)

// ManifestWorkReplicaSet creates a ManifestWork for each cluster that its Placements select, in the
// cluster's namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=mwrs
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Placement",type="string",JSONPath=`.status.conditions[?(@.type=="PlacementVerified")].reason`
// +kubebuilder:printcolumn:name="Found",type="string",JSONPath=`.status.conditions[?(@.type=="PlacementVerified")].status`
// +kubebuilder:printcolumn:name="ManifestWorks",type="string",JSONPath=`.status.conditions[?(@.type=="ManifestworkApplied")].reason`
// +kubebuilder:printcolumn:name="Applied",type="string",JSONPath=`.status.conditions[?(@.type=="ManifestworkApplied")].status`
type ManifestWorkReplicaSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +optional
	Spec ManifestWorkReplicaSetSpec `json:"spec,omitzero"`
	// status is the observed state.
	// +optional
	Status ManifestWorkReplicaSetStatus `json:"status,omitzero"`
}

// ManifestWorkReplicaSetSpec is the template of the ManifestWorks, and their clusters.
type ManifestWorkReplicaSetSpec struct {
	// manifestWorkTemplate is the spec of each ManifestWork.
	// +optional
	ManifestWorkTemplate workv1.ManifestWorkSpec `json:"manifestWorkTemplate,omitzero"`
	// placementRefs name Placements of the same namespace. A cluster that several Placements select
	// gets a ManifestWork for each.
	// +kubebuilder:validation:MinItems=1
	PlacementRefs []LocalPlacementReference `json:"placementRefs"`
	// cascadeDeletionPolicy is Background, to remove the ManifestWorkReplicaSet before its
	// ManifestWorks, or Foreground, to remove it after them. Default Background.
	// +kubebuilder:default=Background
	// +kubebuilder:validation:Required
	CascadeDeletionPolicy CascadeDeletionPolicy `json:"cascadeDeletionPolicy,omitempty"`
}

// LocalPlacementReference names a Placement, and sets the rollout to its clusters.
type LocalPlacementReference struct {
	// name of the Placement.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// rolloutStrategy is the order and pace of the rollout.
	// +kubebuilder:default={type: All, all: {progressDeadline: None}}
	// +optional
	RolloutStrategy clusterv1alpha1.RolloutStrategy `json:"rolloutStrategy,omitzero"`
}

// ManifestWorkReplicaSetStatus is the observed state of a ManifestWorkReplicaSet.
type ManifestWorkReplicaSetStatus struct {
	// conditions are PlacementVerified, PlacementRolledOut and ManifestworkApplied.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// summary counts the ManifestWorks of all Placements.
	// +optional
	Summary ManifestWorkReplicaSetSummary `json:"summary"`
	// placementSummary counts the ManifestWorks of each Placement, in the order of the spec.
	// +optional
	PlacementsSummary []PlacementSummary `json:"placementSummary,omitempty"`
}

// PlacementSummary counts the ManifestWorks of one Placement.
type PlacementSummary struct {
	// name of the Placement.
	// +optional
	Name string `json:"name"`
	// availableDecisionGroups has the number of decision groups of the Placement, of clusters with
	// the current template, and of selected clusters, such as 2 (3 / 5 clusters applied).
	// +optional
	AvailableDecisionGroups string `json:"availableDecisionGroups"`
	// summary counts the ManifestWorks; total is those with the current template.
	// +optional
	Summary ManifestWorkReplicaSetSummary `json:"summary"`
}

// ManifestWorkReplicaSetSummary counts ManifestWorks.
type ManifestWorkReplicaSetSummary struct {
	// total is how many have the current template.
	// +optional
	Total int `json:"total"`
	// progressing is how many have condition Progressing=True.
	// +optional
	Progressing int `json:"progressing"`
	// available is how many have condition Available=True.
	// +optional
	Available int `json:"available"`
	// degraded is how many have condition Degraded=True.
	// +optional
	Degraded int `json:"degraded"`
	// applied is how many have condition Applied=True.
	// +optional
	Applied int `json:"applied"`
	// desiredTotal is not written.
	// +optional
	DesiredTotal int `json:"desiredTotal,omitempty"`
	// updated is not written.
	// +optional
	Updated int `json:"updated,omitempty"`
}

// ManifestWorkReplicaSetList is a list of ManifestWorkReplicaSets.
//
// +kubebuilder:object:root=true
type ManifestWorkReplicaSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ManifestWorkReplicaSet `json:"items"`
}
