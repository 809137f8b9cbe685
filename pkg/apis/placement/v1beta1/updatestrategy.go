// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ClusterStagedUpdateStrategy divides members into stages, for
// ClusterStagedUpdateRuns.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=csus,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
type ClusterStagedUpdateStrategy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec holds the stages.
	//
	// +required
	Spec UpdateStrategySpec `json:"spec"`
}

// ClusterStagedUpdateStrategyList is a list of ClusterStagedUpdateStrategies.
//
// +kubebuilder:object:root=true
type ClusterStagedUpdateStrategyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterStagedUpdateStrategy `json:"items"`
}

// StagedUpdateStrategy divides members into stages, for StagedUpdateRuns of its
// namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=sus,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
type StagedUpdateStrategy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec holds the stages.
	//
	// +required
	Spec UpdateStrategySpec `json:"spec"`
}

// StagedUpdateStrategyList is a list of StagedUpdateStrategies.
//
// +kubebuilder:object:root=true
type StagedUpdateStrategyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []StagedUpdateStrategy `json:"items"`
}

// UpdateStrategySpec is a sequence of stages.
type UpdateStrategySpec struct {
	// stages in order, at most 31. Every member of the placement must be in exactly one.
	//
	// +required
	// +kubebuilder:validation:MaxItems=31
	Stages []StageConfig `json:"stages"`
}

// StageConfig is one stage: its members, their order and concurrency, and the tasks before and
// after it.
type StageConfig struct {
	// name of the stage: lower-case letters and digits, at most 63.
	//
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]+$`
	Name string `json:"name"`

	// labelSelector selects the members; {} selects all. If unset, the stage has no members.
	//
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// sortingLabelKey is a label whose integer value sets the order of members, then by name. If
	// unset, by name.
	//
	// +optional
	SortingLabelKey *string `json:"sortingLabelKey,omitempty"`

	// maxConcurrency is how many members are updated at once: a number of at least 1, or a
	// percentage of the stage, rounded down but at least 1. Default 1.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^(100|[1-9][0-9]?)%$`
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self > 0",message="maxConcurrency must be at least 1"
	MaxConcurrency *intstr.IntOrString `json:"maxConcurrency,omitempty"`

	// afterStageTasks must complete before the next stage starts; at most 2.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.type != 'Approval' || !has(t.waitTime))",message="AfterStageTaskType is Approval, waitTime is not allowed"
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.type != 'TimedWait' || has(t.waitTime))",message="AfterStageTaskType is TimedWait, waitTime is required"
	AfterStageTasks []StageTask `json:"afterStageTasks,omitempty"`

	// beforeStageTasks must complete before this stage starts; at most 1, an Approval.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=1
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.type != 'Approval' || !has(t.waitTime))",message="AfterStageTaskType is Approval, waitTime is not allowed"
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.type != 'TimedWait')",message="BeforeStageTaskType cannot be TimedWait"
	BeforeStageTasks []StageTask `json:"beforeStageTasks,omitempty"`
}

// StageTask must complete before or after a stage.
type StageTask struct {
	// type is TimedWait or Approval.
	//
	// +required
	Type StageTaskType `json:"type"`

	// waitTime is the duration of a TimedWait, such as 90s, 1h30m or 0s.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^(?:(?:0|[1-9][0-9]*)(\.[0-9]+)?(?:s|m|h))+$`
	WaitTime *metav1.Duration `json:"waitTime,omitempty"`
}

// StageTaskType is a kind of task.
//
// +kubebuilder:validation:Enum=TimedWait;Approval
type StageTaskType string

const (
	// StageTaskTimedWait waits for a duration.
	StageTaskTimedWait StageTaskType = "TimedWait"
	// StageTaskApproval waits for the approval of a user.
	StageTaskApproval StageTaskType = "Approval"
)
