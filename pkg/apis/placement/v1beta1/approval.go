// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Labels of an approval request.
const (
	// TargetUpdateRunLabel is the name of the update run.
	TargetUpdateRunLabel = KeyPrefix + "targetUpdateRun"
	// TargetUpdatingStageLabel is the name of the stage.
	TargetUpdatingStageLabel = KeyPrefix + "targetUpdatingStage"
	// TaskTypeLabel is BeforeStageTask or AfterStageTask.
	TaskTypeLabel = KeyPrefix + "taskType"
	// IsLatestUpdateRunApprovalLabel is "true" on the newest approval request of its update run and
	// "false" on all others.
	IsLatestUpdateRunApprovalLabel = KeyPrefix + "isLatestUpdateRunApproval"

	// BeforeStageTask and AfterStageTask are the values of TaskTypeLabel.
	BeforeStageTask = "beforeStage"
	AfterStageTask  = "afterStage"
)

// Condition types of an approval request.
const (
	// ConditionApprovalRequestApproved is set by the user who approves. It counts only for the
	// request's current generation.
	ConditionApprovalRequestApproved = "Approved"
	// ConditionApprovalRequestApprovalAccepted is True once the update run has accepted the
	// approval. The approval cannot be revoked afterwards.
	ConditionApprovalRequestApprovalAccepted = "ApprovalAccepted"
)

// ReasonApprovalRequestApprovalAccepted is the reason of
// ConditionApprovalRequestApprovalAccepted.
const ReasonApprovalRequestApprovalAccepted = "ApprovalRequestApprovalAccepted"

// ApprovalRequestObject is an approval request of either scope.
//
// +kubebuilder:object:generate=false
type ApprovalRequestObject interface {
	metav1.Object
	runtime.Object
	// GetSpec returns the spec itself, not a copy.
	GetSpec() *ApprovalRequestSpec
	// GetStatus returns the status itself, not a copy.
	GetStatus() *ApprovalRequestStatus
}

var (
	_ ApprovalRequestObject = (*ClusterApprovalRequest)(nil)
	_ ApprovalRequestObject = (*ApprovalRequest)(nil)
)

// BeforeStageApprovalName returns the name of the approval request before a stage.
func BeforeStageApprovalName(updateRun, stage string) string {
	return updateRun + "-before-" + stage
}

// AfterStageApprovalName returns the name of the approval request after a stage.
func AfterStageApprovalName(updateRun, stage string) string {
	return updateRun + "-after-" + stage
}

// ClusterApprovalRequest asks a user to approve the next step of a ClusterStagedUpdateRun. The hub
// creates it; to approve, set the condition Approved.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=careq,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Update-Run",type=string,JSONPath=`.spec.parentStageRollout`
// +kubebuilder:printcolumn:name="Stage",type=string,JSONPath=`.spec.targetStage`
// +kubebuilder:printcolumn:name="Approved",type=string,JSONPath=`.status.conditions[?(@.type=="Approved")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterApprovalRequest struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec identifies the update run and the stage. Immutable.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="The spec field is immutable"
	Spec ApprovalRequestSpec `json:"spec"`

	// status holds the approval.
	//
	// +optional
	Status ApprovalRequestStatus `json:"status,omitzero"`
}

// GetSpec returns the spec itself, not a copy.
func (r *ClusterApprovalRequest) GetSpec() *ApprovalRequestSpec { return &r.Spec }

// GetStatus returns the status itself, not a copy.
func (r *ClusterApprovalRequest) GetStatus() *ApprovalRequestStatus { return &r.Status }

// ClusterApprovalRequestList is a list of ClusterApprovalRequests.
//
// +kubebuilder:object:root=true
type ClusterApprovalRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterApprovalRequest `json:"items"`
}

// ApprovalRequest asks a user to approve the next step of a StagedUpdateRun in the same namespace.
// The hub creates it; to approve, set the condition Approved.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=areq,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Update-Run",type=string,JSONPath=`.spec.parentStageRollout`
// +kubebuilder:printcolumn:name="Stage",type=string,JSONPath=`.spec.targetStage`
// +kubebuilder:printcolumn:name="Approved",type=string,JSONPath=`.status.conditions[?(@.type=="Approved")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ApprovalRequest struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec identifies the update run and the stage. Immutable.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="The spec field is immutable"
	Spec ApprovalRequestSpec `json:"spec"`

	// status holds the approval.
	//
	// +optional
	Status ApprovalRequestStatus `json:"status,omitzero"`
}

// GetSpec returns the spec itself, not a copy.
func (r *ApprovalRequest) GetSpec() *ApprovalRequestSpec { return &r.Spec }

// GetStatus returns the status itself, not a copy.
func (r *ApprovalRequest) GetStatus() *ApprovalRequestStatus { return &r.Status }

// ApprovalRequestList is a list of ApprovalRequests.
//
// +kubebuilder:object:root=true
type ApprovalRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ApprovalRequest `json:"items"`
}

// ApprovalRequestSpec identifies an update run and a stage.
type ApprovalRequestSpec struct {
	// parentStageRollout is the name of the update run.
	//
	// +required
	ParentStageRollout string `json:"parentStageRollout"`

	// targetStage is the name of the stage.
	//
	// +required
	TargetStage string `json:"targetStage"`
}

// ApprovalRequestStatus holds the approval.
type ApprovalRequestStatus struct {
	// conditions are Approved, set by a user, and ApprovalAccepted, set by the hub.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
