// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
)

const (
	// ManifestWorkReplicaSetFinalizer is on every ManifestWorkReplicaSet until its
	// ManifestWorks are deleted.
	ManifestWorkReplicaSetFinalizer = "work.open-cluster-management.io/manifest-work-cleanup"
	// ReplicaSetLabel is on ManifestWorks that were made for a ManifestWorkReplicaSet:
	// its namespace, a dot and its name.
	ReplicaSetLabel = "work.open-cluster-management.io/manifestworkreplicaset"
	// PlacementNameLabel is on these too: the name of the Placement.
	PlacementNameLabel = "work.open-cluster-management.io/placementname"
	// GivenAtAnnotation is when such a ManifestWork got the template that it has, in
	// RFC 3339: how long a cluster takes counts from there.
	GivenAtAnnotation = "fleetgate.io/given-at"
)

// Condition types of a ManifestWorkReplicaSet.
const (
	// ConditionPlacementVerified is True when its Placements are there and have decided for
	// clusters.
	ConditionPlacementVerified = "PlacementVerified"
	// ConditionPlacementRolledOut is True when all of these have what the template says,
	// and say that it went well.
	ConditionPlacementRolledOut = "PlacementRolledOut"
	// ConditionManifestworkApplied is True when all ManifestWorks are Available, and none
	// is Progressing or Degraded.
	ConditionManifestworkApplied = "ManifestworkApplied"
)

// Reasons of these conditions.
const (
	// ReasonAsExpected goes with True.
	ReasonAsExpected = "AsExpected"
	// ReasonNotAsExpected goes with False.
	ReasonNotAsExpected = "NotAsExpected"
	// ReasonPlacementDecisionNotFound goes with PlacementVerified=False: a Placement is
	// not there.
	ReasonPlacementDecisionNotFound = "PlacementDecisionNotFound"
	// ReasonPlacementDecisionEmpty goes with False: no cluster was decided for.
	ReasonPlacementDecisionEmpty = "PlacementDecisionEmpty"
	// ReasonProgressing and ReasonComplete go with PlacementRolledOut.
	ReasonProgressing = "Progressing"
	// ReasonComplete goes with PlacementRolledOut=True.
	ReasonComplete = "Complete"
	// ReasonProcessing goes with ManifestworkApplied=False: some are Progressing.
	ReasonProcessing = "Processing"
	// ReasonInvalidManifestWorkName goes with ManifestworkApplied=False: the namespace and
	// name of the ManifestWorkReplicaSet make no label of its ManifestWorks.
	ReasonInvalidManifestWorkName = "InvalidManifestWorkName"
)

// CascadeDeletionPolicy is which goes first, a ManifestWorkReplicaSet or its ManifestWorks.
//
// +kubebuilder:validation:Enum=Background;Foreground
type CascadeDeletionPolicy string

const (
	// CascadeBackground lets the ManifestWorkReplicaSet go as soon as its ManifestWorks
	// are being deleted.
	CascadeBackground CascadeDeletionPolicy = "Background"
	// CascadeForeground keeps it until they are gone.
	CascadeForeground CascadeDeletionPolicy = "Foreground"
)

// ManifestWorkReplicaSet makes a ManifestWork for each cluster that Placements have
// decided for, in the cluster's namespace.
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

	// spec is what clusters are to have, and which.
	// +optional
	Spec ManifestWorkReplicaSetSpec `json:"spec,omitzero"`
	// status is what became of it.
	// +optional
	Status ManifestWorkReplicaSetStatus `json:"status,omitzero"`
}

// ManifestWorkReplicaSetSpec is what clusters are to have, and which.
type ManifestWorkReplicaSetSpec struct {
	// manifestWorkTemplate is the spec of each ManifestWork.
	// +optional
	ManifestWorkTemplate workv1.ManifestWorkSpec `json:"manifestWorkTemplate,omitzero"`
	// placementRefs name Placements of the same namespace. A cluster that several decide
	// for has a ManifestWork for each.
	// +kubebuilder:validation:MinItems=1
	PlacementRefs []LocalPlacementReference `json:"placementRefs"`
	// cascadeDeletionPolicy is whether the ManifestWorkReplicaSet goes before its
	// ManifestWorks, Background, or after them, Foreground. It defaults to Background.
	// +kubebuilder:default=Background
	// +kubebuilder:validation:Required
	CascadeDeletionPolicy CascadeDeletionPolicy `json:"cascadeDeletionPolicy,omitempty"`
}

// LocalPlacementReference names a Placement, and says how its clusters are come to.
type LocalPlacementReference struct {
	// name is the Placement's.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// rolloutStrategy is in which order, and how fast.
	// +kubebuilder:default={type: All, all: {progressDeadline: None}}
	// +optional
	RolloutStrategy clusterv1alpha1.RolloutStrategy `json:"rolloutStrategy,omitzero"`
}

// ManifestWorkReplicaSetStatus is what became of a ManifestWorkReplicaSet.
type ManifestWorkReplicaSetStatus struct {
	// conditions are PlacementVerified, PlacementRolledOut and ManifestworkApplied.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// summary counts the ManifestWorks of all Placements.
	// +optional
	Summary ManifestWorkReplicaSetSummary `json:"summary"`
	// placementSummary counts those of each, in the order of the spec.
	// +optional
	PlacementsSummary []PlacementSummary `json:"placementSummary,omitempty"`
}

// PlacementSummary counts the ManifestWorks of one Placement.
type PlacementSummary struct {
	// name is the Placement's.
	// +optional
	Name string `json:"name"`
	// availableDecisionGroups says how many decision groups the Placement has, how many
	// clusters have what the template says now, and how many were chosen, as in
	// 2 (3 / 5 clusters applied).
	// +optional
	AvailableDecisionGroups string `json:"availableDecisionGroups"`
	// summary has the total of those that are as the template says now.
	// +optional
	Summary ManifestWorkReplicaSetSummary `json:"summary"`
}

// ManifestWorkReplicaSetSummary counts ManifestWorks.
type ManifestWorkReplicaSetSummary struct {
	// total are those that are as the template says now.
	// +optional
	Total int `json:"total"`
	// progressing are those with condition Progressing=True.
	// +optional
	Progressing int `json:"progressing"`
	// available are those with condition Available=True.
	// +optional
	Available int `json:"available"`
	// degraded are those with condition Degraded=True.
	// +optional
	Degraded int `json:"degraded"`
	// applied are those with condition Applied=True.
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
	// items are the sets.
	Items []ManifestWorkReplicaSet `json:"items"`
}
