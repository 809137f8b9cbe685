// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Labels of a PlacementDecision.
const (
	// PlacementLabel is the name of the Placement.
	PlacementLabel = GroupName + "/placement"
	// DecisionGroupIndexLabel is the index of the decision group, from 0.
	DecisionGroupIndexLabel = GroupName + "/decision-group-index"
	// DecisionGroupNameLabel is the name of the decision group. Empty if it has none.
	DecisionGroupNameLabel = GroupName + "/decision-group-name"
)

// PlacementDecision lists clusters that a Placement selected. The controller that decides writes
// it; add-ons and ManifestWorkReplicaSets read it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
type PlacementDecision struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status holds the decisions.
	// +optional
	Status PlacementDecisionStatus `json:"status,omitzero"`
}

// PlacementDecisionStatus holds decisions.
type PlacementDecisionStatus struct {
	// decisions are the clusters of this slice.
	Decisions []ClusterDecision `json:"decisions"`
}

// ClusterDecision is one cluster.
type ClusterDecision struct {
	// clusterName is the name of the ManagedCluster.
	ClusterName string `json:"clusterName"`
	// reason for the selection; can be empty.
	Reason string `json:"reason"`
	// score of the cluster when it was selected.
	// +optional
	Score *int64 `json:"score,omitempty"`
}

// PlacementDecisionList is a list of PlacementDecisions.
//
// +kubebuilder:object:root=true
type PlacementDecisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PlacementDecision `json:"items"`
}
