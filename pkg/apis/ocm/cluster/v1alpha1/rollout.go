// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// RolloutType is a way to roll something out.
//
// +kubebuilder:validation:Enum=All;Progressive;ProgressivePerGroup
type RolloutType string

const (
	// RolloutAll gives it to all clusters at once.
	RolloutAll RolloutType = "All"
	// RolloutProgressive gives it to some clusters at a time.
	RolloutProgressive RolloutType = "Progressive"
	// RolloutProgressivePerGroup gives it to one decision group at a time.
	RolloutProgressivePerGroup RolloutType = "ProgressivePerGroup"
)

// RolloutStrategy is how something is rolled out to the clusters of a Placement. Of the
// fields beside type, the one counts that it names.
type RolloutStrategy struct {
	// type is All for all clusters at once, Progressive for some at a time in the order of
	// their names, ProgressivePerGroup for one decision group at a time in the order of
	// their indexes. It defaults to All.
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

// RolloutConfig is what all types have.
type RolloutConfig struct {
	// minSuccessTime is for how long a cluster has to have succeeded before it makes room
	// for others. With type All it does not count. It defaults to 0.
	// +kubebuilder:default="0"
	// +optional
	MinSuccessTime metav1.Duration `json:"minSuccessTime,omitzero"`
	// progressDeadline is for how long a cluster may be under way, or have failed, before
	// it counts as failed and makes room for others: a number with h, m or s. It
	// defaults to None: for ever.
	// +kubebuilder:default=None
	// +kubebuilder:validation:Pattern=`^(([0-9])+[h|m|s])|None$`
	// +optional
	ProgressDeadline string `json:"progressDeadline,omitempty"`
	// maxFailures is how many clusters may have failed, as a number or a percentage, before
	// no further one gets it: of all clusters, with type ProgressivePerGroup of each
	// group. With type All it does not count. It defaults to 0.
	// +kubebuilder:default=0
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^((100|[0-9]{1,2})%|[0-9]+)$`
	// +optional
	MaxFailures intstr.IntOrString `json:"maxFailures,omitzero"`
}

// MandatoryDecisionGroup names decision groups: by name, or by index if there is no name.
type MandatoryDecisionGroup struct {
	// groupName is that of the decision groups.
	// +optional
	GroupName string `json:"groupName,omitempty"`
	// groupIndex is that of the decision group.
	// +optional
	GroupIndex int32 `json:"groupIndex,omitempty"`
}

// MandatoryDecisionGroups are the groups that come first.
type MandatoryDecisionGroups struct {
	// mandatoryDecisionGroups come first, one after another. None of their clusters may
	// fail, or no other one gets it.
	// +optional
	MandatoryDecisionGroups []MandatoryDecisionGroup `json:"mandatoryDecisionGroups,omitempty"`
}

// RolloutAllConfig is for type All.
type RolloutAllConfig struct {
	RolloutConfig `json:",inline"`
}

// RolloutProgressiveConfig is for type Progressive.
type RolloutProgressiveConfig struct {
	RolloutConfig           `json:",inline"`
	MandatoryDecisionGroups `json:",inline"`
	// maxConcurrency is how many clusters may be under way, as a number, or as a percentage
	// of all but those of mandatory groups. Empty: all of them.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^((100|[0-9]{1,2})%|[0-9]+)$`
	// +optional
	MaxConcurrency intstr.IntOrString `json:"maxConcurrency,omitzero"`
}

// RolloutPerGroupConfig is for type ProgressivePerGroup.
type RolloutPerGroupConfig struct {
	RolloutConfig           `json:",inline"`
	MandatoryDecisionGroups `json:",inline"`
}
