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

	// spec has the stages.
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

	// spec has the stages.
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

// UpdateStrategySpec is stages, one after the other.
type UpdateStrategySpec struct {
	// stages in their order, at most 31. Every member of the placement must be
	// in exactly one.
	//
	// +required
	// +kubebuilder:validation:MaxItems=31
	Stages []StageConfig `json:"stages"`
}

// StageConfig is one stage: which members, in which order, how many at once,
// and what must happen before and after.
type StageConfig struct {
	// name of the stage: lower-case letters and digits, at most 63.
	//
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]+$`
	Name string `json:"name"`

	// labelSelector chooses the members. One that is empty ({}) chooses all;
	// without one the stage has no members.
	//
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// sortingLabelKey is a label whose integer value gives the members' order;
	// equal ones go by name. Empty means by name.
	//
	// +optional
	SortingLabelKey *string `json:"sortingLabelKey,omitempty"`

	// maxConcurrency is how many members are updated at once: a number of at
	// least 1, or a percentage of the stage, rounded down but at least 1.
	// Default 1.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^(100|[1-9][0-9]?)%$`
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self > 0",message="maxConcurrency must be at least 1"
	MaxConcurrency *intstr.IntOrString `json:"maxConcurrency,omitempty"`

	// afterStageTasks must be done before the next stage begins: at most 2.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.type != 'Approval' || !has(t.waitTime))",message="AfterStageTaskType is Approval, waitTime is not allowed"
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.type != 'TimedWait' || has(t.waitTime))",message="AfterStageTaskType is TimedWait, waitTime is required"
	AfterStageTasks []StageTask `json:"afterStageTasks,omitempty"`

	// beforeStageTasks must be done before this stage begins: at most 1, an
	// Approval.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=1
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.type != 'Approval' || !has(t.waitTime))",message="AfterStageTaskType is Approval, waitTime is not allowed"
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.type != 'TimedWait')",message="BeforeStageTaskType cannot be TimedWait"
	BeforeStageTasks []StageTask `json:"beforeStageTasks,omitempty"`
}

// StageTask is something that must happen before or after a stage.
type StageTask struct {
	// type is TimedWait or Approval.
	//
	// +required
	Type StageTaskType `json:"type"`

	// waitTime is how long a TimedWait lasts, such as 90s, 1h30m or 0s.
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
	// StageTaskTimedWait waits for a time.
	StageTaskTimedWait StageTaskType = "TimedWait"
	// StageTaskApproval waits for a user's approval.
	StageTaskApproval StageTaskType = "Approval"
)
