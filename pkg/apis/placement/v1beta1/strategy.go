// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"cmp"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// RolloutStrategy sets how a change reaches the members.
type RolloutStrategy struct {
	// type is what moves members to a new snapshot. Default RollingUpdate; External cannot be
	// changed.
	//
	// +optional
	// +kubebuilder:default=RollingUpdate
	// +kubebuilder:validation:XValidation:rule="oldSelf != 'External' || self == 'External'",message="cannot change rollout strategy type from 'External' to other types"
	Type RolloutStrategyType `json:"type,omitempty"`

	// rollingUpdate sets the pace; for type RollingUpdate only.
	//
	// +optional
	RollingUpdate *RollingUpdateConfig `json:"rollingUpdate,omitempty"`

	// applyStrategy sets how resources are applied on a member.
	//
	// +optional
	ApplyStrategy *ApplyStrategy `json:"applyStrategy,omitempty"`

	// deleteStrategy sets what happens on members when the placement is deleted.
	//
	// +optional
	DeleteStrategy *DeleteStrategy `json:"deleteStrategy,omitempty"`

	// reportBackStrategy sets whether the status of applied resources is reported to the hub.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.type != 'Mirror' || (has(self.destination) && size(self.destination) > 0)",message="when reportBackStrategy.type is 'Mirror', a destination must be specified"
	ReportBackStrategy *ReportBackStrategy `json:"reportBackStrategy,omitempty"`
}

// RolloutStrategyType is what moves members to a new snapshot.
//
// +kubebuilder:validation:Enum=RollingUpdate;External
type RolloutStrategyType string

const (
	// RollingUpdateStrategy moves members within the limits of RollingUpdateConfig.
	RollingUpdateStrategy RolloutStrategyType = "RollingUpdate"
	// ExternalStrategy leaves the rollout to update runs.
	ExternalStrategy RolloutStrategyType = "External"
)

// RollingUpdateConfig sets the pace of a rolling update.
type RollingUpdateConfig struct {
	// maxUnavailable is how many of the desired members can be unavailable because of the rollout:
	// a number, or a percentage, rounded up. Default 25%.
	//
	// +optional
	// +kubebuilder:default="25%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^((100|[0-9]{1,2})%|[0-9]+)$`
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// maxSurge is how many members above the desired number can have the resources during the
	// rollout: a number, or a percentage, rounded up. Default 25%.
	//
	// +optional
	// +kubebuilder:default="25%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^((100|[0-9]{1,2})%|[0-9]+)$`
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`

	// unavailablePeriodSeconds is how long, in seconds, resources without trackable availability
	// count as unavailable after they were applied. Default 60.
	//
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=0
	UnavailablePeriodSeconds *int `json:"unavailablePeriodSeconds,omitempty"`
}

// ApplyStrategy sets how resources are applied on a member.
type ApplyStrategy struct {
	// comparisonOption sets which differences between hub and member count as drift. Default
	// PartialComparison.
	//
	// +optional
	// +kubebuilder:default=PartialComparison
	ComparisonOption ComparisonOption `json:"comparisonOption,omitempty"`

	// whenToApply sets whether a drifted object is overwritten. Default Always.
	//
	// +optional
	// +kubebuilder:default=Always
	WhenToApply WhenToApply `json:"whenToApply,omitempty"`

	// type is how objects are written. Default ClientSideApply.
	//
	// +optional
	// +kubebuilder:default=ClientSideApply
	Type ApplyStrategyType `json:"type,omitempty"`

	// allowCoOwnership allows applying an object that has other owners on the member. Default
	// false.
	//
	// +optional
	AllowCoOwnership bool `json:"allowCoOwnership,omitempty"`

	// serverSideApplyConfig is for type ServerSideApply only.
	//
	// +optional
	ServerSideApplyConfig *ServerSideApplyConfig `json:"serverSideApplyConfig,omitempty"`

	// whenToTakeOver sets what happens to an object that already exists on the member. Default
	// Always.
	//
	// +optional
	// +kubebuilder:default=Always
	WhenToTakeOver WhenToTakeOver `json:"whenToTakeOver,omitempty"`

	// ignoreFields are fields of placed resources that clients on the member can change. They are
	// not reverted and do not count as drift. The upstream API has no such field.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	IgnoreFields []IgnoreFieldsRule `json:"ignoreFields,omitempty"`
}

// IgnoreFieldsRule selects resources and names fields of them.
type IgnoreFieldsRule struct {
	// group is the API group of the resources; empty for the core group, "*" for all groups.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`

	// kind is the kind of the resources, for example Deployment; "*" for all kinds.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// namespace is that of the resources. If unset, the rule applies to all namespaces.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// name is that of the resource. If unset, the rule applies to all names.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// condition sets when the fields are ignored. Default OnSpokePresent.
	//
	// +optional
	// +kubebuilder:default=OnSpokePresent
	Condition IgnoreFieldsCondition `json:"condition,omitempty"`

	// jsonPointers name the fields by RFC 6901, for example /spec/replicas. An asterisk stands for
	// all items of a list.
	//
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^/.+`
	// +kubebuilder:validation:items:XValidation:rule="!self.matches('^/(apiVersion|kind|status)(/|$)')",message="apiVersion, kind and status cannot be ignored"
	// +kubebuilder:validation:items:XValidation:rule="!self.matches('^/metadata(/|$)') || self.matches('^/metadata/(labels|annotations)/.')",message="of the metadata only a label or an annotation can be ignored"
	JSONPointers []string `json:"jsonPointers"`
}

// Matches reports whether the rule applies to a resource.
func (r *IgnoreFieldsRule) Matches(group, kind, namespace, name string) bool {
	return (r.Group == "*" || r.Group == group) && (r.Kind == "*" || r.Kind == kind) &&
		(r.Namespace == "" || r.Namespace == namespace) && (r.Name == "" || r.Name == name)
}

// IgnoreFieldsCondition is when fields are ignored. The values are those of ManifestWorks.
//
// +kubebuilder:validation:Enum=OnSpokePresent;OnSpokeChange
type IgnoreFieldsCondition string

const (
	// IgnoreOnSpokePresent writes the fields when the resource is created, and ignores them
	// afterwards.
	IgnoreOnSpokePresent IgnoreFieldsCondition = "OnSpokePresent"
	// IgnoreOnSpokeChange writes the fields when the manifest changes, and ignores what clients on
	// the member change in between.
	IgnoreOnSpokeChange IgnoreFieldsCondition = "OnSpokeChange"
)

// WithDefaults returns the strategy with every unset field set to the default of the schema; s can
// be nil. A Work that was written by hand has no defaults.
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

// ComparisonOption is which differences count as drift.
//
// +kubebuilder:validation:Enum=PartialComparison;FullComparison
type ComparisonOption string

const (
	// PartialComparison compares only fields that the hub sets.
	PartialComparison ComparisonOption = "PartialComparison"
	// FullComparison compares all fields.
	FullComparison ComparisonOption = "FullComparison"
)

// WhenToApply is whether a drifted object is overwritten.
//
// +kubebuilder:validation:Enum=Always;IfNotDrifted
type WhenToApply string

const (
	// ApplyAlways overwrites a drifted object.
	ApplyAlways WhenToApply = "Always"
	// ApplyIfNotDrifted reports a drifted object and does not overwrite it.
	ApplyIfNotDrifted WhenToApply = "IfNotDrifted"
)

// ApplyStrategyType is how objects are written on a member.
//
// +kubebuilder:validation:Enum=ClientSideApply;ServerSideApply;ReportDiff
type ApplyStrategyType string

const (
	// ClientSideApply merges the last applied manifest, the new one and the object. A manifest that
	// is too large for this is applied server-side.
	ClientSideApply ApplyStrategyType = "ClientSideApply"
	// ServerSideApply lets the member's API server merge.
	ServerSideApply ApplyStrategyType = "ServerSideApply"
	// ReportDiff writes nothing and reports the diff.
	ReportDiff ApplyStrategyType = "ReportDiff"
)

// WhenToTakeOver is what happens to an object that already exists.
//
// +kubebuilder:validation:Enum=Always;IfNoDiff;Never
type WhenToTakeOver string

const (
	// TakeOverAlways takes the object over.
	TakeOverAlways WhenToTakeOver = "Always"
	// TakeOverIfNoDiff takes it over if it has no difference from the hub.
	TakeOverIfNoDiff WhenToTakeOver = "IfNoDiff"
	// TakeOverNever does not change it and reports it as not applied.
	TakeOverNever WhenToTakeOver = "Never"
)

// ServerSideApplyConfig configures server-side apply.
type ServerSideApplyConfig struct {
	// force takes over fields of other managers. Default false: conflicts fail the apply.
	//
	// +optional
	ForceConflicts bool `json:"force,omitempty"`
}

// DeleteStrategy sets what happens on members when a placement is deleted.
type DeleteStrategy struct {
	// propagationPolicy is Delete or Abandon. Default Delete. A member that the placement no longer
	// selects keeps persistent volumes and their claims, unless the policy is set to Delete.
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
	// AbandonPlaced retains them on the members.
	AbandonPlaced DeletePropagationPolicy = "Abandon"
	// DeletePlaced deletes them.
	DeletePlaced DeletePropagationPolicy = "Delete"
)

// ReportBackStrategy sets whether and where the hub shows the status of applied resources.
type ReportBackStrategy struct {
	// type is Disabled or Mirror. Default Disabled.
	//
	// +required
	// +kubebuilder:default=Disabled
	Type ReportBackStrategyType `json:"type"`

	// destination of the status; required with type Mirror.
	//
	// +optional
	Destination ReportBackDestination `json:"destination,omitempty"`
}

// ReportBackStrategyType is whether status is reported to the hub.
//
// +kubebuilder:validation:Enum=Disabled;Mirror
type ReportBackStrategyType string

const (
	// ReportBackDisabled reports no status.
	ReportBackDisabled ReportBackStrategyType = "Disabled"
	// ReportBackMirror reports the status as it is on the member.
	ReportBackMirror ReportBackStrategyType = "Mirror"
)

// ReportBackDestination is where a status is written.
//
// +kubebuilder:validation:Enum=OriginalResource;WorkAPI
type ReportBackDestination string

const (
	// ReportBackToOriginalResource writes it to the resource on the hub; only for placements on one
	// member.
	ReportBackToOriginalResource ReportBackDestination = "OriginalResource"
	// ReportBackToWork writes it to the Work's status.
	ReportBackToWork ReportBackDestination = "WorkAPI"
)
