// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const (
	// LabelDecisionKey is on every PlacementDecision, with the same value on all that are one
	// decision. Who decides writes it.
	LabelDecisionKey = "multicluster.x-k8s.io/decision-key"

	// LabelDecisionIndex is on every PlacementDecision: which one of its decision it is, from 0.
	LabelDecisionIndex = "multicluster.x-k8s.io/decision-index"

	// LabelPlacementKey ties a PlacementDecision to a workload that has the same label. The
	// hub copies it from the placement, if that has it.
	LabelPlacementKey = "multicluster.x-k8s.io/placement-key"

	// AnnotationStandardDecisions is on a placement: with "true" its decision is published as
	// PlacementDecisions, with "false" it is not. Whoever writes the placement writes it. A
	// Placement without it is published, other placements are if the gateway was told so.
	AnnotationStandardDecisions = "fleetgate.io/standard-decisions"

	// SchedulerName is schedulerName of the PlacementDecisions that fleetgate writes.
	SchedulerName = "fleetgate"

	// MaxDecisions is how many clusters a PlacementDecision has at most.
	MaxDecisions = 100
)

// EventClustersNotPublished is a warning on a placement: clusters that it was decided for
// are not in its PlacementDecisions, as they have no ClusterProfile.
const EventClustersNotPublished = "ClustersNotPublished"

// PlacementDecision lists clusters that somebody decided something to be for. All with the
// same label multicluster.x-k8s.io/decision-key are one decision; without clusters it says
// that there are none.
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

	// schedulerName is who decided.
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`
}

// ClusterDecision is one cluster of a decision.
type ClusterDecision struct {
	// clusterProfileRef names the cluster's ClusterProfile.
	ClusterProfileRef ClusterProfileReference `json:"clusterProfileRef"`

	// reason is why it was chosen, for people. fleetgate does not write it.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// ClusterProfileReference names a ClusterProfile.
type ClusterProfileReference struct {
	// name is the profile's.
	Name string `json:"name"`

	// namespace is the profile's. Empty means that of the decision.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// PlacementDecisionList is a list of PlacementDecisions.
//
// +kubebuilder:object:root=true
type PlacementDecisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the decisions.
	Items []PlacementDecision `json:"items"`
}
