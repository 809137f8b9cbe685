// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// SchedulerBindingFinalizer holds a binding until the scheduler has counted
	// it out.
	SchedulerBindingFinalizer = KeyPrefix + "scheduler-crb-cleanup"
	// WorkCleanupFinalizer holds a binding until its Works are gone, and a Work
	// until the member has removed what it had applied.
	WorkCleanupFinalizer = KeyPrefix + "work-cleanup"
	// PreviousBindingStateAnnotation is on an unscheduled binding: the state it
	// had before, to which it returns if the member is chosen again.
	PreviousBindingStateAnnotation = KeyPrefix + "previous-binding-state"
)

// MessageRolloutStarted is the message of ConditionRolloutStarted when it is True
// on a binding; two controllers set it.
const MessageRolloutStarted = "The latest resources are being rolled out to the cluster"

// The reasons of a binding's conditions, where they are not those of a
// placement. Rollouts and overrides have the same reasons in both.
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

// BindingName names a binding: the first 26 characters of the placement, the
// first 27 of the member and the first 8 of unique (a UUID), so that it fits
// into the 63 of a label's value. A dot at a cut would make the name invalid
// and is left out.
func BindingName(placement, member, unique string) string {
	return head(placement, 26) + "-" + head(member, 27) + "-" + head(unique, 8)
}

// head returns the first n characters of a name, without a dot at their end.
func head(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.TrimRight(s, ".")
}

// BindingObject is a binding of either scope, as controllers see it.
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

var (
	_ BindingObject = (*ClusterResourceBinding)(nil)
	_ BindingObject = (*ResourceBinding)(nil)
)

// ClusterResourceBinding binds a ClusterResourcePlacement to one member.
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
// +kubebuilder:printcolumn:name="Why-Not",type=string,priority=1,JSONPath=`.status.conditions[?(@.status!="True")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterResourceBinding struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what the member shall have.
	//
	// +required
	Spec ResourceBindingSpec `json:"spec"`

	// status says what it has.
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

// ResourceBinding binds a ResourcePlacement to one member.
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
// +kubebuilder:printcolumn:name="Why-Not",type=string,priority=1,JSONPath=`.status.conditions[?(@.status!="True")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ResourceBinding struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what the member shall have.
	//
	// +required
	Spec ResourceBindingSpec `json:"spec"`

	// status says what it has.
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

// ResourceBindingSpec says what a member shall have.
type ResourceBindingSpec struct {
	// state is how far the decision has been carried out.
	//
	// +required
	State BindingState `json:"state"`

	// resourceSnapshotName is the master of the group of resource snapshots
	// that the member shall have. Empty until the rollout chooses one.
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

	// schedulingPolicySnapshotName is the policy snapshot that chose the
	// member.
	//
	// +required
	SchedulingPolicySnapshotName string `json:"schedulingPolicySnapshotName"`

	// targetCluster is the member's name.
	//
	// +required
	TargetCluster string `json:"targetCluster"`

	// clusterDecision says why the member was chosen.
	//
	// +required
	ClusterDecision ClusterDecision `json:"clusterDecision"`

	// applyStrategy is the placement's, as of the last rollout.
	//
	// +optional
	ApplyStrategy *ApplyStrategy `json:"applyStrategy,omitempty"`
}

// BindingState is how far a decision has been carried out.
type BindingState string

const (
	// BindingScheduled means chosen, with nothing on the member yet.
	BindingScheduled BindingState = "Scheduled"
	// BindingBound means that the member has, or is getting, the resources.
	BindingBound BindingState = "Bound"
	// BindingUnscheduled means no longer chosen, to be removed by the rollout.
	BindingUnscheduled BindingState = "Unscheduled"
)

// ResourceBindingStatus says what a member has.
type ResourceBindingStatus struct {
	// failedPlacements are objects that could not be applied, are not
	// available or whose difference could not be found; at most 100.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=100
	FailedPlacements []FailedResourcePlacement `json:"failedPlacements,omitempty"`

	// driftedPlacements are objects that were changed on the member after they
	// had been applied; at most 100.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=100
	DriftedPlacements []DriftedResourcePlacement `json:"driftedPlacements,omitempty"`

	// diffedPlacements are objects that differ from the hub's and have not been
	// written; at most 100.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=100
	DiffedPlacements []DiffedResourcePlacement `json:"diffedPlacements,omitempty"`

	// conditions of the placement on this member, from RolloutStarted on.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
