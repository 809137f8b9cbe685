// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// RolloutType is how a rollout proceeds.
//
// +kubebuilder:validation:Enum=All;Progressive;ProgressivePerGroup
type RolloutType string

const (
	// RolloutAll updates all clusters at once.
	RolloutAll RolloutType = "All"
	// RolloutProgressive updates some clusters at a time.
	RolloutProgressive RolloutType = "Progressive"
	// RolloutProgressivePerGroup updates one decision group at a time.
	RolloutProgressivePerGroup RolloutType = "ProgressivePerGroup"
)

// RolloutStrategy sets how a rollout to the clusters of a Placement proceeds. Only the field that
// type names counts.
type RolloutStrategy struct {
	// type is All for all clusters at once, Progressive for some at a time in order of name, or
	// ProgressivePerGroup for one decision group at a time in order of index. Default All.
	// +kubebuilder:default=All
	// +optional
	Type RolloutType `json:"type,omitempty"`
	// all is for type All.
	// +optional
	All *RolloutAllConfig `json:"all,omitempty"`
	// progressive is for type Progressive.
	// +optional
	Progressive *RolloutProgressiveConfig `json:"progressive,omitempty"`
	// progressivePerGroup is for type ProgressivePerGroup.
	// +optional
	ProgressivePerGroup *RolloutPerGroupConfig `json:"progressivePerGroup,omitempty"`
}

// RolloutConfig is the configuration of all types.
type RolloutConfig struct {
	// minSuccessTime is how long a cluster must stay successful before the next one starts. Ignored
	// with type All. Default 0.
	// +kubebuilder:default="0"
	// +optional
	MinSuccessTime metav1.Duration `json:"minSuccessTime,omitzero"`
	// progressDeadline is how long a cluster can be progressing or failing before it counts as
	// failed and the next one starts: a number with h, m or s. Default None: no limit.
	// +kubebuilder:default=None
	// +kubebuilder:validation:Pattern=`^(([0-9])+[h|m|s])|None$`
	// +optional
	ProgressDeadline string `json:"progressDeadline,omitempty"`
	// maxFailures is how many clusters can fail without stopping the rollout: a number, or a
	// percentage, of all clusters or, with type ProgressivePerGroup, of each group. Ignored with
	// type All. Default 0.
	// +kubebuilder:default=0
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^((100|[0-9]{1,2})%|[0-9]+)$`
	// +optional
	MaxFailures intstr.IntOrString `json:"maxFailures,omitzero"`
}

// MandatoryDecisionGroup selects decision groups by name, or by index if no name is set.
type MandatoryDecisionGroup struct {
	// groupName is the name of the decision groups.
	// +optional
	GroupName string `json:"groupName,omitempty"`
	// groupIndex is the index of the decision group.
	// +optional
	GroupIndex int32 `json:"groupIndex,omitempty"`
}

// MandatoryDecisionGroups are the groups that are updated first.
type MandatoryDecisionGroups struct {
	// mandatoryDecisionGroups are updated first, one after another. If one of their clusters fails,
	// the rollout stops.
	// +optional
	MandatoryDecisionGroups []MandatoryDecisionGroup `json:"mandatoryDecisionGroups,omitempty"`
}

// RolloutAllConfig is the configuration of type All.
type RolloutAllConfig struct {
	RolloutConfig `json:",inline"`
}

// RolloutProgressiveConfig is the configuration of type Progressive.
type RolloutProgressiveConfig struct {
	RolloutConfig           `json:",inline"`
	MandatoryDecisionGroups `json:",inline"`
	// maxConcurrency is how many clusters are updated at once: a number, or a percentage of all
	// clusters outside mandatory groups. If unset, all of them.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^((100|[0-9]{1,2})%|[0-9]+)$`
	// +optional
	MaxConcurrency intstr.IntOrString `json:"maxConcurrency,omitzero"`
}

// RolloutPerGroupConfig is the configuration of type ProgressivePerGroup.
type RolloutPerGroupConfig struct {
	RolloutConfig           `json:",inline"`
	MandatoryDecisionGroups `json:",inline"`
}
