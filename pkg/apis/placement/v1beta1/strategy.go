// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"cmp"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// RolloutStrategy says how a change reaches the chosen members.
type RolloutStrategy struct {
	// type is who moves the members to a new snapshot. Default RollingUpdate;
	// External cannot be changed to another type.
	//
	// +optional
	// +kubebuilder:default=RollingUpdate
	// +kubebuilder:validation:XValidation:rule="oldSelf != 'External' || self == 'External'",message="cannot change rollout strategy type from 'External' to other types"
	Type RolloutStrategyType `json:"type,omitempty"`

	// rollingUpdate sets the pace; only with type RollingUpdate.
	//
	// +optional
	RollingUpdate *RollingUpdateConfig `json:"rollingUpdate,omitempty"`

	// applyStrategy says how the resources are applied on a member.
	//
	// +optional
	ApplyStrategy *ApplyStrategy `json:"applyStrategy,omitempty"`

	// deleteStrategy says what happens on the members when the placement is
	// deleted.
	//
	// +optional
	DeleteStrategy *DeleteStrategy `json:"deleteStrategy,omitempty"`

	// reportBackStrategy says whether the status of the applied resources is
	// brought back to the hub.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.type != 'Mirror' || (has(self.destination) && size(self.destination) > 0)",message="when reportBackStrategy.type is 'Mirror', a destination must be specified"
	ReportBackStrategy *ReportBackStrategy `json:"reportBackStrategy,omitempty"`
}

// RolloutStrategyType is who moves members to a new snapshot.
//
// +kubebuilder:validation:Enum=RollingUpdate;External
type RolloutStrategyType string

const (
	// RollingUpdateStrategy moves them within the limits of RollingUpdateConfig.
	RollingUpdateStrategy RolloutStrategyType = "RollingUpdate"
	// ExternalStrategy leaves it to update runs.
	ExternalStrategy RolloutStrategyType = "External"
)

// RollingUpdateConfig sets the pace of a rolling update.
type RollingUpdateConfig struct {
	// maxUnavailable is how many of the wanted members may be without working
	// resources because of the rollout: a number or a percentage, rounded up.
	// Default 25%.
	//
	// +optional
	// +kubebuilder:default="25%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^((100|[0-9]{1,2})%|[0-9]+)$`
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// maxSurge is by how many members more than wanted may have the resources
	// during the rollout: a number or a percentage, rounded up. Default 25%.
	//
	// +optional
	// +kubebuilder:default="25%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^((100|[0-9]{1,2})%|[0-9]+)$`
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`

	// unavailablePeriodSeconds is how long, in seconds, resources whose
	// availability cannot be tracked count as unavailable after they were
	// applied. Default 60.
	//
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=0
	UnavailablePeriodSeconds *int `json:"unavailablePeriodSeconds,omitempty"`
}

// ApplyStrategy says how resources are applied on a member.
type ApplyStrategy struct {
	// comparisonOption says which differences between hub and member count as
	// drift. Default PartialComparison.
	//
	// +optional
	// +kubebuilder:default=PartialComparison
	ComparisonOption ComparisonOption `json:"comparisonOption,omitempty"`

	// whenToApply says whether an object that has drifted is written again.
	// Default Always.
	//
	// +optional
	// +kubebuilder:default=Always
	WhenToApply WhenToApply `json:"whenToApply,omitempty"`

	// type is the way of writing. Default ClientSideApply.
	//
	// +optional
	// +kubebuilder:default=ClientSideApply
	Type ApplyStrategyType `json:"type,omitempty"`

	// allowCoOwnership lets an object that has other owners on the member be
	// applied too. Default false.
	//
	// +optional
	AllowCoOwnership bool `json:"allowCoOwnership,omitempty"`

	// serverSideApplyConfig is for type ServerSideApply only.
	//
	// +optional
	ServerSideApplyConfig *ServerSideApplyConfig `json:"serverSideApplyConfig,omitempty"`

	// whenToTakeOver says what happens to an object that was on the member
	// before. Default Always.
	//
	// +optional
	// +kubebuilder:default=Always
	WhenToTakeOver WhenToTakeOver `json:"whenToTakeOver,omitempty"`
}

// WithDefaults is the strategy with nothing left open, in the words of the schema's
// defaults; that of a nil one is all of them. A Work may be written by hand, without them.
func (s *ApplyStrategy) WithDefaults() ApplyStrategy {
	var whole ApplyStrategy
	if s != nil {
		whole = *s.DeepCopy()
	}
	whole.Type = cmp.Or(whole.Type, ClientSideApply)
	whole.ComparisonOption = cmp.Or(whole.ComparisonOption, PartialComparison)
	whole.WhenToApply = cmp.Or(whole.WhenToApply, ApplyAlways)
	whole.WhenToTakeOver = cmp.Or(whole.WhenToTakeOver, TakeOverAlways)
	if whole.Type == ServerSideApply && whole.ServerSideApplyConfig == nil {
		whole.ServerSideApplyConfig = &ServerSideApplyConfig{}
	}
	return whole
}

// ComparisonOption says which differences count as drift.
//
// +kubebuilder:validation:Enum=PartialComparison;FullComparison
type ComparisonOption string

const (
	// PartialComparison looks at the fields that the hub sets.
	PartialComparison ComparisonOption = "PartialComparison"
	// FullComparison looks at all fields.
	FullComparison ComparisonOption = "FullComparison"
)

// WhenToApply says whether a drifted object is written again.
//
// +kubebuilder:validation:Enum=Always;IfNotDrifted
type WhenToApply string

const (
	// ApplyAlways writes it whether or not it has drifted.
	ApplyAlways WhenToApply = "Always"
	// ApplyIfNotDrifted leaves a drifted object as it is and reports it.
	ApplyIfNotDrifted WhenToApply = "IfNotDrifted"
)

// ApplyStrategyType is a way of writing objects on a member.
//
// +kubebuilder:validation:Enum=ClientSideApply;ServerSideApply;ReportDiff
type ApplyStrategyType string

const (
	// ClientSideApply merges the last applied manifest, the new one and the
	// object; a manifest too large for that is applied server-side.
	ClientSideApply ApplyStrategyType = "ClientSideApply"
	// ServerSideApply leaves the merge to the member's API server.
	ServerSideApply ApplyStrategyType = "ServerSideApply"
	// ReportDiff writes nothing and reports what would be different.
	ReportDiff ApplyStrategyType = "ReportDiff"
)

// WhenToTakeOver says what happens to an object that was there before.
//
// +kubebuilder:validation:Enum=Always;IfNoDiff;Never
type WhenToTakeOver string

const (
	// TakeOverAlways takes it over at once.
	TakeOverAlways WhenToTakeOver = "Always"
	// TakeOverIfNoDiff takes it over when it is as the hub wants it.
	TakeOverIfNoDiff WhenToTakeOver = "IfNoDiff"
	// TakeOverNever leaves it alone and reports it as not applied.
	TakeOverNever WhenToTakeOver = "Never"
)

// ServerSideApplyConfig tunes server-side apply.
type ServerSideApplyConfig struct {
	// force takes over fields that another manager owns. Default false: such a
	// field makes the apply fail.
	//
	// +optional
	ForceConflicts bool `json:"force,omitempty"`
}

// DeleteStrategy says what happens on members when a placement is deleted.
type DeleteStrategy struct {
	// propagationPolicy is Delete or Abandon. Default Delete.
	//
	// +optional
	// +kubebuilder:default=Delete
	PropagationPolicy DeletePropagationPolicy `json:"propagationPolicy,omitempty"`
}

// DeletePropagationPolicy is what happens to placed resources.
//
// +kubebuilder:validation:Enum=Abandon;Delete
type DeletePropagationPolicy string

const (
	// AbandonPlaced leaves them on the members.
	AbandonPlaced DeletePropagationPolicy = "Abandon"
	// DeletePlaced deletes them.
	DeletePlaced DeletePropagationPolicy = "Delete"
)

// ReportBackStrategy says whether and where the status of applied resources is
// shown on the hub.
type ReportBackStrategy struct {
	// type is Disabled or Mirror. Default Disabled.
	//
	// +required
	// +kubebuilder:default=Disabled
	Type ReportBackStrategyType `json:"type"`

	// destination is where the status goes; needed with type Mirror.
	//
	// +optional
	Destination ReportBackDestination `json:"destination,omitempty"`
}

// ReportBackStrategyType says whether status is brought back.
//
// +kubebuilder:validation:Enum=Disabled;Mirror
type ReportBackStrategyType string

const (
	// ReportBackDisabled brings nothing back.
	ReportBackDisabled ReportBackStrategyType = "Disabled"
	// ReportBackMirror brings back the status as it is on the member.
	ReportBackMirror ReportBackStrategyType = "Mirror"
)

// ReportBackDestination is where a status is brought to.
//
// +kubebuilder:validation:Enum=OriginalResource;WorkAPI
type ReportBackDestination string

const (
	// ReportBackToOriginalResource writes it into the resource on the hub; only
	// for placements on one member.
	ReportBackToOriginalResource ReportBackDestination = "OriginalResource"
	// ReportBackToWork writes it into the Work's status.
	ReportBackToWork ReportBackDestination = "WorkAPI"
)
