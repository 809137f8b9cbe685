// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// SchedulerBindingFinalizer keeps a deleted binding until the scheduler has taken it into
	// account.
	SchedulerBindingFinalizer = KeyPrefix + "scheduler-crb-cleanup"
	// WorkCleanupFinalizer keeps a deleted binding until its Works are gone, and a deleted Work
	// until the member has removed the objects that it applied.
	WorkCleanupFinalizer = KeyPrefix + "work-cleanup"
	// PreviousBindingStateAnnotation is on an unscheduled binding. Its value is the previous state,
	// which the scheduler restores if it picks the member again.
	PreviousBindingStateAnnotation = KeyPrefix + "previous-binding-state"
	// RolloutStartedAnnotation is the generation of a binding with which an update run started its
	// rollout. The condition RolloutStarted follows from it, and is written with the others.
	RolloutStartedAnnotation = "fleetgate.io/rollout-started"
)

// MessageRolloutStarted is the message of ConditionRolloutStarted=True on a binding. Two
// controllers set it.
const MessageRolloutStarted = "The latest resources are being rolled out to the cluster"

// Reasons of a binding's conditions that a placement does not have. The reasons for rollouts and
// overrides are the same for both.
const (
	ReasonAllWorkSynced  = "AllWorkSynced"
	ReasonSyncWorkFailed = "SyncWorkFailed"

	ReasonApplyInProgress           = "ApplyInProgress"
	ReasonAllWorkHaveBeenApplied    = "AllWorkHaveBeenApplied"
	ReasonNotAllWorkHaveBeenApplied = "NotAllWorkHaveBeenApplied"

	ReasonAllWorkAreAvailable                = "AllWorkAreAvailable"
	ReasonNotAllWorkAreAvailable             = "NotAllWorkAreAvailable"
	ReasonNotAllWorkAreAvailabilityTrackable = "NotAllWorkAreAvailabilityTrackable"

	ReasonDiffReportInProgress       = "DiffReportInProgress"
	ReasonAllWorkHaveDiffReported    = "AllWorkHaveDiffReported"
	ReasonNotAllWorkHaveDiffReported = "NotAllWorkHaveDiffReported"
)

// BindingName returns the name of a binding: the first 26 characters of the placement, the first 27
// of the member and the first 8 of unique (a UUID). So it fits into a label value of 63 characters.
// A dot before a cut would make the name invalid and is omitted.
func BindingName(placement, member, unique string) string {
	return head(placement, 26) + "-" + head(member, 27) + "-" + head(unique, 8)
}

// head returns the first n characters of a name, without trailing dots.
func head(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.TrimRight(s, ".")
}

// BindingObject is a binding of either scope.
//
// +kubebuilder:object:generate=false
type BindingObject interface {
	metav1.Object
	runtime.Object
	// GetSpec returns the spec itself, not a copy.
	GetSpec() *ResourceBindingSpec
	// GetStatus returns the status itself, not a copy.
	GetStatus() *ResourceBindingStatus
}

// StartedByRun reports whether an update run has started the rollout of a binding's current spec.
func StartedByRun(b BindingObject) bool {
	return b.GetAnnotations()[RolloutStartedAnnotation] == strconv.FormatInt(b.GetGeneration(), 10)
}

var (
	_ BindingObject = (*ClusterResourceBinding)(nil)
	_ BindingObject = (*ResourceBinding)(nil)
)

// ClusterResourceBinding binds a ClusterResourcePlacement to one member. The scheduler creates it,
// the rollout sets its snapshots, and the hub creates Works from it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=crb,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Member",type=string,JSONPath=`.spec.targetCluster`
// +kubebuilder:printcolumn:name="WorkSynchronized",type=string,JSONPath=`.status.conditions[?(@.type=="WorkSynchronized")].status`
// +kubebuilder:printcolumn:name="ResourcesApplied",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].status`
// +kubebuilder:printcolumn:name="ResourceAvailable",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.status!="True")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.status!="True")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterResourceBinding struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	//
	// +required
	Spec ResourceBindingSpec `json:"spec"`

	// status is the observed state.
	//
	// +optional
	Status ResourceBindingStatus `json:"status,omitzero"`
}

// GetSpec returns the spec itself, not a copy.
func (b *ClusterResourceBinding) GetSpec() *ResourceBindingSpec { return &b.Spec }

// GetStatus returns the status itself, not a copy.
func (b *ClusterResourceBinding) GetStatus() *ResourceBindingStatus { return &b.Status }

// ClusterResourceBindingList is a list of ClusterResourceBindings.
//
// +kubebuilder:object:root=true
type ClusterResourceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourceBinding `json:"items"`
}

// ResourceBinding binds a ResourcePlacement to one member. The scheduler creates it, the rollout
// sets its snapshots, and the hub creates Works from it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=rb,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Member",type=string,JSONPath=`.spec.targetCluster`
// +kubebuilder:printcolumn:name="WorkSynchronized",type=string,JSONPath=`.status.conditions[?(@.type=="WorkSynchronized")].status`
// +kubebuilder:printcolumn:name="ResourcesApplied",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].status`
// +kubebuilder:printcolumn:name="ResourceAvailable",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.status!="True")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.status!="True")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ResourceBinding struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	//
	// +required
	Spec ResourceBindingSpec `json:"spec"`

	// status is the observed state.
	//
	// +optional
	Status ResourceBindingStatus `json:"status,omitzero"`
}

// GetSpec returns the spec itself, not a copy.
func (b *ResourceBinding) GetSpec() *ResourceBindingSpec { return &b.Spec }

// GetStatus returns the status itself, not a copy.
func (b *ResourceBinding) GetStatus() *ResourceBindingStatus { return &b.Status }

// ResourceBindingList is a list of ResourceBindings.
//
// +kubebuilder:object:root=true
type ResourceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceBinding `json:"items"`
}

// ResourceBindingSpec is the desired state of a placement on one member.
type ResourceBindingSpec struct {
	// state of the scheduling decision.
	//
	// +required
	State BindingState `json:"state"`

	// resourceSnapshotName is the master of the resource snapshots to apply on the member. Unset
	// until the rollout chooses one.
	//
	// +required
	ResourceSnapshotName string `json:"resourceSnapshotName"`

	// resourceOverrideSnapshots are the ResourceOverride snapshots to apply.
	//
	// +optional
	ResourceOverrideSnapshots []NamespacedName `json:"resourceOverrideSnapshots,omitempty"`

	// clusterResourceOverrideSnapshots are the ClusterResourceOverride
	// snapshots to apply.
	//
	// +optional
	ClusterResourceOverrideSnapshots []string `json:"clusterResourceOverrideSnapshots,omitempty"`

	// schedulingPolicySnapshotName is the policy snapshot by which the member was picked.
	//
	// +required
	SchedulingPolicySnapshotName string `json:"schedulingPolicySnapshotName"`

	// targetCluster is the name of the member.
	//
	// +required
	TargetCluster string `json:"targetCluster"`

	// clusterDecision is why the member was picked.
	//
	// +required
	ClusterDecision ClusterDecision `json:"clusterDecision"`

	// applyStrategy is the placement's at the last rollout.
	//
	// +optional
	ApplyStrategy *ApplyStrategy `json:"applyStrategy,omitempty"`
}

// BindingState is the state of a scheduling decision.
type BindingState string

const (
	// BindingScheduled means that the scheduler picked the member and the rollout to it has not
	// started.
	BindingScheduled BindingState = "Scheduled"
	// BindingBound means that the resources are on the member, or are being applied there.
	BindingBound BindingState = "Bound"
	// BindingUnscheduled means that the member is no longer picked. The rollout deletes the
	// binding.
	BindingUnscheduled BindingState = "Unscheduled"
)

// ResourceBindingStatus is the observed state of a placement on one member.
type ResourceBindingStatus struct {
	// failedPlacements are objects that could not be applied, are not available or whose diff could
	// not be computed; at most 100.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=100
	FailedPlacements []FailedResourcePlacement `json:"failedPlacements,omitempty"`

	// driftedPlacements are objects that were changed on the member after they were applied; at
	// most 100.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=100
	DriftedPlacements []DriftedResourcePlacement `json:"driftedPlacements,omitempty"`

	// diffedPlacements are objects that differ from the hub and were not written; at most 100.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=100
	DiffedPlacements []DiffedResourcePlacement `json:"diffedPlacements,omitempty"`

	// conditions of the placement on this member, starting with RolloutStarted.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
