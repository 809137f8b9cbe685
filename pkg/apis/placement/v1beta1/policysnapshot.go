// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// PolicyIndexLabel is on a policy snapshot. Its value is the index, from 0.
	PolicyIndexLabel = KeyPrefix + "policy-index"
	// PlacementGenerationAnnotation is on a policy snapshot. Its value is the generation of its
	// placement.
	PlacementGenerationAnnotation = KeyPrefix + "CRP-generation"
	// NumberOfClustersAnnotation is on a policy snapshot of a PickN placement. Its value is how
	// many members the placement selects. It is not part of the hash, so scaling creates no
	// snapshot.
	NumberOfClustersAnnotation = KeyPrefix + "number-of-clusters"
)

// PolicySnapshotName returns the name of the policy snapshot with an index.
func PolicySnapshotName(placement string, index int) string {
	return placement + "-" + strconv.Itoa(index)
}

// PolicySnapshotObject is a policy snapshot of either scope. Its ConditionScheduled has the reasons
// ReasonSchedulingPolicyFulfilled and ReasonSchedulingPolicyUnfulfilled.
//
// +kubebuilder:object:generate=false
type PolicySnapshotObject interface {
	metav1.Object
	runtime.Object
	// GetSpec returns the spec itself, not a copy.
	GetSpec() *SchedulingPolicySnapshotSpec
	// GetStatus returns the status itself, not a copy.
	GetStatus() *SchedulingPolicySnapshotStatus
}

var (
	_ PolicySnapshotObject = (*ClusterSchedulingPolicySnapshot)(nil)
	_ PolicySnapshotObject = (*SchedulingPolicySnapshot)(nil)
)

// ClusterSchedulingPolicySnapshot is a revision of a ClusterResourcePlacement's policy, with the
// scheduler's decisions. The hub writes it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=csps,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Gen",type=string,JSONPath=`.metadata.generation`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterSchedulingPolicySnapshot struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the policy. Immutable.
	//
	// +required
	Spec SchedulingPolicySnapshotSpec `json:"spec"`

	// status has the scheduler's decisions.
	//
	// +optional
	Status SchedulingPolicySnapshotStatus `json:"status,omitzero"`
}

// GetSpec returns the spec itself, not a copy.
func (s *ClusterSchedulingPolicySnapshot) GetSpec() *SchedulingPolicySnapshotSpec { return &s.Spec }

// GetStatus returns the status itself, not a copy.
func (s *ClusterSchedulingPolicySnapshot) GetStatus() *SchedulingPolicySnapshotStatus {
	return &s.Status
}

// ClusterSchedulingPolicySnapshotList is a list of ClusterSchedulingPolicySnapshots.
//
// +kubebuilder:object:root=true
type ClusterSchedulingPolicySnapshotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterSchedulingPolicySnapshot `json:"items"`
}

// SchedulingPolicySnapshot is a revision of a ResourcePlacement's policy, with the scheduler's
// decisions. The hub writes it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=sps,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Gen",type=string,JSONPath=`.metadata.generation`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SchedulingPolicySnapshot struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the policy. Immutable.
	//
	// +required
	Spec SchedulingPolicySnapshotSpec `json:"spec"`

	// status has the scheduler's decisions.
	//
	// +optional
	Status SchedulingPolicySnapshotStatus `json:"status,omitzero"`
}

// GetSpec returns the spec itself, not a copy.
func (s *SchedulingPolicySnapshot) GetSpec() *SchedulingPolicySnapshotSpec { return &s.Spec }

// GetStatus returns the status itself, not a copy.
func (s *SchedulingPolicySnapshot) GetStatus() *SchedulingPolicySnapshotStatus { return &s.Status }

// SchedulingPolicySnapshotList is a list of SchedulingPolicySnapshots.
//
// +kubebuilder:object:root=true
type SchedulingPolicySnapshotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SchedulingPolicySnapshot `json:"items"`
}

// SchedulingPolicySnapshotSpec is a revision of a policy.
type SchedulingPolicySnapshotSpec struct {
	// policy is the placement's policy. Unset if it has none.
	//
	// +optional
	Policy *PlacementPolicy `json:"policy,omitempty"`

	// policyHash is the SHA-256, as hexadecimal text, of the policy without numberOfClusters.
	//
	// +required
	PolicyHash []byte `json:"policyHash"`
}

// SchedulingPolicySnapshotStatus has the scheduler's decisions.
type SchedulingPolicySnapshotStatus struct {
	// observedCRPGeneration is the generation of the placement, of either scope, that the scheduler
	// observed.
	//
	// +required
	ObservedCRPGeneration int64 `json:"observedCRPGeneration"`

	// conditions has Scheduled: whether the policy is fulfilled.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// targetClusters are the picked members, then some that were not picked; at most 1000.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	TargetClusters []ClusterDecision `json:"targetClusters,omitempty"`
}

// ClusterDecision is the decision about one member.
type ClusterDecision struct {
	// clusterName is the name of the member.
	//
	// +required
	ClusterName string `json:"clusterName"`

	// selected is true if the member was picked.
	//
	// +required
	Selected bool `json:"selected"`

	// clusterScore is the rank of the member. Unset if no ranking was needed.
	//
	// +optional
	ClusterScore *ClusterScore `json:"clusterScore,omitempty"`

	// reason for the decision, for people.
	//
	// +required
	Reason string `json:"reason"`
}

// ClusterScore is the rank of a member.
type ClusterScore struct {
	// affinityScore is the sum of the weights of the matching preferred terms.
	//
	// +optional
	AffinityScore *int32 `json:"affinityScore,omitempty"`

	// priorityScore is the topology spread score; it precedes the affinity score.
	//
	// +optional
	TopologySpreadScore *int32 `json:"priorityScore,omitempty"`
}
