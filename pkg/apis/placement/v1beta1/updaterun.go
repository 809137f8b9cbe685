// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// UpdateRunFinalizer keeps a deleted update run until its approval requests are gone.
	UpdateRunFinalizer = KeyPrefix + "stagedupdaterun-finalizer"
	// DeleteStageName is the name of the last stage, which removes the resources from unscheduled
	// members.
	DeleteStageName = KeyPrefix + "deleteStage"
	// UpdateRunNameMaxLength limits the name of an update run, in characters.
	UpdateRunNameMaxLength = 63
)

// Condition types of an update run. Its stages have Progressing and Succeeded too.
const (
	ConditionUpdateRunInitialized = "Initialized"
	ConditionUpdateRunProgressing = "Progressing"
	ConditionUpdateRunSucceeded   = "Succeeded"
)

// Condition types of a member in a stage.
const (
	ConditionClusterUpdatingStarted   = "Started"
	ConditionClusterUpdatingSucceeded = "Succeeded"
)

// Condition types of a task of a stage.
const (
	ConditionStageTaskApprovalRequestCreated  = "ApprovalRequestCreated"
	ConditionStageTaskApprovalRequestApproved = "ApprovalRequestApproved"
	ConditionStageTaskWaitTimeElapsed         = "WaitTimeElapsed"
)

// Reasons of an update run's conditions.
const (
	ReasonUpdateRunInitializedSuccessfully = "UpdateRunInitializedSuccessfully"
	ReasonUpdateRunInitializedFailed       = "UpdateRunInitializedFailed"
	ReasonUpdateRunProgressing             = "UpdateRunProgressing"
	ReasonUpdateRunWaiting                 = "UpdateRunWaiting"
	ReasonUpdateRunStuck                   = "UpdateRunStuck"
	ReasonUpdateRunStopping                = "UpdateRunStopping"
	ReasonUpdateRunStopped                 = "UpdateRunStopped"
	ReasonUpdateRunFailed                  = "UpdateRunFailed"
	ReasonUpdateRunSucceeded               = "UpdateRunSucceeded"

	ReasonStageUpdatingStarted           = "StageUpdatingStarted"
	ReasonStageUpdatingWaiting           = "StageUpdatingWaiting"
	ReasonStageUpdatingStopping          = "StageUpdatingStopping"
	ReasonStageUpdatingStopped           = "StageUpdatingStopped"
	ReasonStageUpdatingFailed            = "StageUpdatingFailed"
	ReasonStageUpdatingSucceeded         = "StageUpdatingSucceeded"
	ReasonStageUpdatingSkippedNoClusters = "StageUpdatingSkippedNoClusters"

	ReasonClusterUpdatingStarted   = "ClusterUpdatingStarted"
	ReasonClusterUpdatingFailed    = "ClusterUpdatingFailed"
	ReasonClusterUpdatingSucceeded = "ClusterUpdatingSucceeded"

	ReasonStageTaskApprovalRequestCreated  = "StageTaskApprovalRequestCreated"
	ReasonStageTaskApprovalRequestApproved = "StageTaskApprovalRequestApproved"
	ReasonAfterStageTaskWaitTimeElapsed    = "AfterStageTaskWaitTimeElapsed"
)

// UpdateRunObject is an update run of either scope.
//
// +kubebuilder:object:generate=false
type UpdateRunObject interface {
	metav1.Object
	runtime.Object
	// GetSpec returns the spec itself, not a copy.
	GetSpec() *UpdateRunSpec
	// GetStatus returns the status itself, not a copy.
	GetStatus() *UpdateRunStatus
}

var (
	_ UpdateRunObject = (*ClusterStagedUpdateRun)(nil)
	_ UpdateRunObject = (*StagedUpdateRun)(nil)
)

// ClusterStagedUpdateRun moves the members of a ClusterResourcePlacement with an External rollout
// to one resource snapshot, stage by stage.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=csur,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Placement",type=string,JSONPath=`.spec.placementName`
// +kubebuilder:printcolumn:name="Resource-Snapshot-Index",type=string,JSONPath=`.spec.resourceSnapshotIndex`
// +kubebuilder:printcolumn:name="Policy-Snapshot-Index",type=string,JSONPath=`.status.policySnapshotIndexUsed`
// +kubebuilder:printcolumn:name="Initialized",type=string,JSONPath=`.status.conditions[?(@.type=="Initialized")].status`
// +kubebuilder:printcolumn:name="Progressing",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].status`
// +kubebuilder:printcolumn:name="Succeeded",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].message`
// +kubebuilder:printcolumn:name="Strategy",type=string,priority=1,JSONPath=`.spec.stagedRolloutStrategyName`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name max length is 63"
type ClusterStagedUpdateRun struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state. A user writes it.
	//
	// +required
	Spec UpdateRunSpec `json:"spec"`

	// status is the observed state. The hub writes it.
	//
	// +optional
	Status UpdateRunStatus `json:"status,omitzero"`
}

// GetSpec returns the spec itself, not a copy.
func (r *ClusterStagedUpdateRun) GetSpec() *UpdateRunSpec { return &r.Spec }

// GetStatus returns the status itself, not a copy.
func (r *ClusterStagedUpdateRun) GetStatus() *UpdateRunStatus { return &r.Status }

// ClusterStagedUpdateRunList is a list of ClusterStagedUpdateRuns.
//
// +kubebuilder:object:root=true
type ClusterStagedUpdateRunList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterStagedUpdateRun `json:"items"`
}

// StagedUpdateRun moves the members of a ResourcePlacement of its namespace with an External
// rollout to one resource snapshot, stage by stage.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=sur,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Placement",type=string,JSONPath=`.spec.placementName`
// +kubebuilder:printcolumn:name="Resource-Snapshot-Index",type=string,JSONPath=`.spec.resourceSnapshotIndex`
// +kubebuilder:printcolumn:name="Policy-Snapshot-Index",type=string,JSONPath=`.status.policySnapshotIndexUsed`
// +kubebuilder:printcolumn:name="Initialized",type=string,JSONPath=`.status.conditions[?(@.type=="Initialized")].status`
// +kubebuilder:printcolumn:name="Progressing",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].status`
// +kubebuilder:printcolumn:name="Succeeded",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].message`
// +kubebuilder:printcolumn:name="Strategy",type=string,priority=1,JSONPath=`.spec.stagedRolloutStrategyName`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name max length is 63"
type StagedUpdateRun struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state. A user writes it.
	//
	// +required
	Spec UpdateRunSpec `json:"spec"`

	// status is the observed state. The hub writes it.
	//
	// +optional
	Status UpdateRunStatus `json:"status,omitzero"`
}

// GetSpec returns the spec itself, not a copy.
func (r *StagedUpdateRun) GetSpec() *UpdateRunSpec { return &r.Spec }

// GetStatus returns the status itself, not a copy.
func (r *StagedUpdateRun) GetStatus() *UpdateRunStatus { return &r.Status }

// StagedUpdateRunList is a list of StagedUpdateRuns.
//
// +kubebuilder:object:root=true
type StagedUpdateRunList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []StagedUpdateRun `json:"items"`
}

// UpdateRunSpec is the desired state of an update run.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.state) || !has(self.state) || oldSelf.state != 'Initialize' || self.state != 'Stop'",message="invalid state transition: cannot transition from Initialize to Stop"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.state) || !has(self.state) || oldSelf.state != 'Run' || self.state != 'Initialize'",message="invalid state transition: cannot transition from Run to Initialize"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.state) || !has(self.state) || oldSelf.state != 'Stop' || self.state != 'Initialize'",message="invalid state transition: cannot transition from Stop to Initialize"
type UpdateRunSpec struct {
	// placementName is the name of the placement. Immutable.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="placementName is immutable"
	PlacementName string `json:"placementName"`

	// resourceSnapshotIndex is the index of the group of resource snapshots to roll out. If unset,
	// the newest. Immutable.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="resourceSnapshotIndex is immutable"
	ResourceSnapshotIndex string `json:"resourceSnapshotIndex,omitempty"`

	// stagedRolloutStrategyName is the name of the update strategy. Immutable.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="stagedRolloutStrategyName is immutable"
	StagedRolloutStrategyName string `json:"stagedRolloutStrategyName"`

	// state to reach. Default Initialize. It can change from Initialize to Run, and between Run and
	// Stop.
	//
	// +optional
	// +kubebuilder:default=Initialize
	State UpdateRunState `json:"state,omitempty"`
}

// UpdateRunState is the desired state of an update run.
//
// +kubebuilder:validation:Enum=Initialize;Run;Stop
type UpdateRunState string

const (
	// UpdateRunInitialize computes the stages and waits.
	UpdateRunInitialize UpdateRunState = "Initialize"
	// UpdateRunRun executes the stages.
	UpdateRunRun UpdateRunState = "Run"
	// UpdateRunStop finishes members in progress and stops.
	UpdateRunStop UpdateRunState = "Stop"
)

// UpdateRunStatus is the observed state of an update run.
type UpdateRunStatus struct {
	// policySnapshotIndexUsed is the index of the policy snapshot at the start.
	//
	// +optional
	PolicySnapshotIndexUsed string `json:"policySnapshotIndexUsed,omitempty"`

	// policyObservedClusterCount is how many members the policy selected at the start.
	//
	// +optional
	PolicyObservedClusterCount int `json:"policyObservedClusterCount,omitempty"`

	// resourceSnapshotIndexUsed is the index of the resource snapshots to roll out.
	//
	// +optional
	ResourceSnapshotIndexUsed string `json:"resourceSnapshotIndexUsed,omitempty"`

	// appliedStrategy is the placement's apply strategy at the start.
	//
	// +optional
	AppliedStrategy *ApplyStrategy `json:"appliedStrategy,omitempty"`

	// stagedUpdateStrategySnapshot is the update strategy at the start.
	//
	// +optional
	StagedUpdateStrategySnapshot *UpdateStrategySpec `json:"stagedUpdateStrategySnapshot,omitempty"`

	// stagesStatus is the progress of each stage, in order.
	//
	// +optional
	StagesStatus []StageUpdatingStatus `json:"stagesStatus,omitempty"`

	// deletionStageStatus is the progress of the last stage, which removes the resources from
	// unscheduled members.
	//
	// +optional
	DeletionStageStatus *StageUpdatingStatus `json:"deletionStageStatus,omitempty"`

	// conditions are Initialized, Progressing and Succeeded.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// StageUpdatingStatus is the progress of a stage.
type StageUpdatingStatus struct {
	// stageName is the name of the stage.
	//
	// +required
	StageName string `json:"stageName"`

	// clusters are the members of the stage, in order. The API server rejects null; use an empty
	// list.
	//
	// +required
	Clusters []ClusterUpdatingStatus `json:"clusters"`

	// afterStageTaskStatus is the progress of each task after the stage.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=2
	AfterStageTaskStatus []StageTaskStatus `json:"afterStageTaskStatus,omitempty"`

	// beforeStageTaskStatus is the progress of each task before the stage.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=1
	BeforeStageTaskStatus []StageTaskStatus `json:"beforeStageTaskStatus,omitempty"`

	// startTime is when the stage started. Unset if it has not.
	//
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// endTime is when the stage finished. Unset if it has not.
	//
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`

	// conditions are Progressing and Succeeded.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterUpdatingStatus is the progress of a member in a stage.
type ClusterUpdatingStatus struct {
	// clusterName is the name of the member.
	//
	// +required
	ClusterName string `json:"clusterName"`

	// resourceOverrideSnapshots are the ResourceOverride snapshots that apply.
	//
	// +optional
	ResourceOverrideSnapshots []NamespacedName `json:"resourceOverrideSnapshots,omitempty"`

	// clusterResourceOverrideSnapshots are the ClusterResourceOverride
	// snapshots that apply.
	//
	// +optional
	ClusterResourceOverrideSnapshots []string `json:"clusterResourceOverrideSnapshots,omitempty"`

	// conditions are Started and Succeeded.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// StageTaskStatus is the progress of a task.
type StageTaskStatus struct {
	// type of the task.
	//
	// +required
	Type StageTaskType `json:"type"`

	// approvalRequestName is the name of the approval request, for type Approval.
	//
	// +optional
	ApprovalRequestName string `json:"approvalRequestName,omitempty"`

	// conditions are ApprovalRequestCreated and ApprovalRequestApproved, or
	// WaitTimeElapsed.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
