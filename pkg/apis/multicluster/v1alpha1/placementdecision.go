// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const (
	// LabelDecisionKey is on every PlacementDecision. All PlacementDecisions of one decision have
	// the same value. The scheduler writes it.
	LabelDecisionKey = "multicluster.x-k8s.io/decision-key"

	// LabelDecisionIndex is on every PlacementDecision. Its value is the index in its decision,
	// from 0.
	LabelDecisionIndex = "multicluster.x-k8s.io/decision-index"

	// LabelPlacementKey connects a PlacementDecision to a workload with the same label. The hub
	// copies it from the placement, if set there.
	LabelPlacementKey = "multicluster.x-k8s.io/placement-key"

	// AnnotationStandardDecisions is on a placement: with "true" the hub publishes its decision as
	// PlacementDecisions, with "false" it does not. The author of the placement writes it. If
	// unset, a Placement is published, and other placements if the gateway is configured so.
	AnnotationStandardDecisions = "fleetgate.io/standard-decisions"

	// SchedulerName is schedulerName of the PlacementDecisions that fleetgate writes.
	SchedulerName = "fleetgate"

	// MaxDecisions is the maximum number of clusters in a PlacementDecision.
	MaxDecisions = 100
)

// EventClustersNotPublished is a warning on a placement: selected clusters are missing in its
// PlacementDecisions, because they have no ClusterProfile.
const EventClustersNotPublished = "ClustersNotPublished"

// PlacementDecision lists selected clusters. All with the same label
// multicluster.x-k8s.io/decision-key form one decision; an empty list means that no cluster is
// selected.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
type PlacementDecision struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// decisions are the clusters, at most 100.
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=100
	Decisions []ClusterDecision `json:"decisions"`

	// schedulerName is the scheduler that selected them.
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`
}

// ClusterDecision is one cluster of a decision.
type ClusterDecision struct {
	// clusterProfileRef identifies the ClusterProfile of the cluster.
	ClusterProfileRef ClusterProfileReference `json:"clusterProfileRef"`

	// reason for the selection, for people. fleetgate does not write it.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// ClusterProfileReference identifies a ClusterProfile.
type ClusterProfileReference struct {
	// name of the profile.
	Name string `json:"name"`

	// namespace of the profile. If unset, that of the decision.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// PlacementDecisionList is a list of PlacementDecisions.
//
// +kubebuilder:object:root=true
type PlacementDecisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PlacementDecision `json:"items"`
}
