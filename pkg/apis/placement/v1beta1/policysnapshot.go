// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// PolicyIndexLabel is on a policy snapshot: its index, from 0.
	PolicyIndexLabel = KeyPrefix + "policy-index"
	// PlacementGenerationAnnotation is on a policy snapshot: the generation of
	// the placement that it stands for.
	PlacementGenerationAnnotation = KeyPrefix + "CRP-generation"
	// NumberOfClustersAnnotation is on a policy snapshot of a PickN placement:
	// how many members it wants. It is no part of the hash, so that scaling
	// makes no new snapshot.
	NumberOfClustersAnnotation = KeyPrefix + "number-of-clusters"
)

// PolicySnapshotName names the policy snapshot with an index.
func PolicySnapshotName(placement string, index int) string {
	return placement + "-" + strconv.Itoa(index)
}

// PolicySnapshotObject is a policy snapshot of either scope, as the scheduler
// sees it. The condition ConditionScheduled in its status has the reasons
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

// ClusterSchedulingPolicySnapshot is a ClusterResourcePlacement's policy as it
// was, with the scheduler's answer.
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

	// spec is the policy; it is never changed.
	//
	// +required
	Spec SchedulingPolicySnapshotSpec `json:"spec"`

	// status is the scheduler's answer.
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

// SchedulingPolicySnapshot is a ResourcePlacement's policy as it was, with the
// scheduler's answer.
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

	// spec is the policy; it is never changed.
	//
	// +required
	Spec SchedulingPolicySnapshotSpec `json:"spec"`

	// status is the scheduler's answer.
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

// SchedulingPolicySnapshotSpec is a policy as it was.
type SchedulingPolicySnapshotSpec struct {
	// policy is the placement's policy. Empty means that it had none.
	//
	// +optional
	Policy *PlacementPolicy `json:"policy,omitempty"`

	// policyHash tells one policy from another: the text, in hexadecimal, of
	// the SHA-256 of the policy without numberOfClusters.
	//
	// +required
	PolicyHash []byte `json:"policyHash"`
}

// SchedulingPolicySnapshotStatus is the scheduler's answer to a policy.
type SchedulingPolicySnapshotStatus struct {
	// observedCRPGeneration is the generation of the placement, of either
	// scope, that the answer is for.
	//
	// +required
	ObservedCRPGeneration int64 `json:"observedCRPGeneration"`

	// conditions has Scheduled: whether the policy could be fulfilled.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// targetClusters are the chosen members, then some that were not chosen,
	// with the reason; at most 1000.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	TargetClusters []ClusterDecision `json:"targetClusters,omitempty"`
}

// ClusterDecision says whether and why a member was chosen.
type ClusterDecision struct {
	// clusterName is the member's name.
	//
	// +required
	ClusterName string `json:"clusterName"`

	// selected is true for a chosen member.
	//
	// +required
	Selected bool `json:"selected"`

	// clusterScore is how the member was ranked. Empty means that no ranking
	// was needed.
	//
	// +optional
	ClusterScore *ClusterScore `json:"clusterScore,omitempty"`

	// reason says why, in words.
	//
	// +required
	Reason string `json:"reason"`
}

// ClusterScore is how a member was ranked.
type ClusterScore struct {
	// affinityScore is the sum of the weights of the preferred terms.
	//
	// +optional
	AffinityScore *int32 `json:"affinityScore,omitempty"`

	// priorityScore is the score of the topology spread; it counts before the
	// affinity score.
	//
	// +optional
	TopologySpreadScore *int32 `json:"priorityScore,omitempty"`
}
