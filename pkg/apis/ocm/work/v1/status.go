// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Condition types of a ManifestWork. A manifest has the first four too.
const (
	// ConditionApplied is True when the manifest is applied according to its strategy.
	ConditionApplied = "Applied"
	// ConditionAvailable is True when the object exists, in any state.
	ConditionAvailable = "Available"
	// ConditionStatusFeedbackSynced is True when all values that rules select were read.
	ConditionStatusFeedbackSynced = "StatusFeedbackSynced"
	// ConditionComplete is computed by rules. It is True when the manifest is finished: the agent
	// does not write it any more. If the work has it, the agent stops processing the work.
	ConditionComplete = "Complete"
	// ConditionProgressing and ConditionDegraded are computed by rules, for rollouts.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is True when an update failed.
	ConditionDegraded = "Degraded"
	// ConditionDeleting is True while a deleted work still exists.
	ConditionDeleting = "Deleting"
)

// Reasons of a manifest's conditions.
const (
	// ReasonManifestApplied goes with Applied=True.
	ReasonManifestApplied = "AppliedManifestComplete"
	// ReasonManifestNotApplied goes with Applied=False.
	ReasonManifestNotApplied = "AppliedManifestFailed"
	// ReasonIgnoreFields goes with Applied=False: a path in ignoreFields cannot be evaluated.
	ReasonIgnoreFields = "AppliedManifestSSAIgnoreFieldError"
	// ReasonResourceAvailable goes with Available=True.
	ReasonResourceAvailable = "ResourceAvailable"
	// ReasonResourceNotAvailable goes with Available=False.
	ReasonResourceNotAvailable = "ResourceNotAvailable"
	// ReasonFetchingFailed goes with Available=Unknown: the cluster did not respond.
	ReasonFetchingFailed = "FetchingResourceFailed"
	// ReasonIncompleteMeta goes with Available=Unknown: the manifest does not identify the object.
	ReasonIncompleteMeta = "IncompleteResourceMeta"
	// ReasonNoFeedback goes with StatusFeedbackSynced=True: no rule selects a value.
	ReasonNoFeedback = "NoStatusFeedbackSynced"
	// ReasonFeedbackSynced goes with StatusFeedbackSynced=True.
	ReasonFeedbackSynced = "StatusFeedbackSynced"
	// ReasonFeedbackFailed goes with StatusFeedbackSynced=False.
	ReasonFeedbackFailed = "StatusFeedbackSyncFailed"
	// ReasonRuleEvaluated goes with a condition that a rule computed.
	ReasonRuleEvaluated = "ConditionRuleEvaluated"
	// ReasonRuleInvalid goes with Unknown: the rule does not match the object.
	ReasonRuleInvalid = "ConditionRuleInvalid"
	// ReasonRuleExpressionError goes with False: an expression is invalid.
	ReasonRuleExpressionError = "ConditionRuleExpressionError"
)

// Reasons of a ManifestWork's conditions.
const (
	// ReasonWorkApplied goes with Applied=True.
	ReasonWorkApplied = "AppliedManifestWorkComplete"
	// ReasonWorkNotApplied goes with Applied=False.
	ReasonWorkNotApplied = "AppliedManifestWorkFailed"
	// ReasonResourcesAvailable goes with Available=True.
	ReasonResourcesAvailable = "ResourcesAvailable"
	// ReasonResourcesNotAvailable goes with Available=False.
	ReasonResourcesNotAvailable = "ResourcesNotAvailable"
	// ReasonResourcesUnknown goes with Available=Unknown.
	ReasonResourcesUnknown = "ResourcesStatusUnknown"
	// ReasonRulesAggregated goes with conditions that summarize the rules of all manifests.
	ReasonRulesAggregated = "ConditionRulesAggregated"
	// ReasonWorkDeleting goes with Deleting=True.
	ReasonWorkDeleting = "WorkDeleting"
)

// ManifestWorkStatus is the observed state of a work.
type ManifestWorkStatus struct {
	// conditions of the work.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// resourceStatus is the status of each manifest.
	// +optional
	ResourceStatus ManifestResourceStatus `json:"resourceStatus,omitzero"`
}

// ManifestResourceStatus is the status of each manifest.
type ManifestResourceStatus struct {
	// manifests has an item per manifest of the spec, in the same order.
	// +optional
	Manifests []ManifestCondition `json:"manifests,omitempty"`
}

// ManifestCondition is the status of one manifest.
type ManifestCondition struct {
	// resourceMeta identifies the object.
	ResourceMeta ManifestResourceMeta `json:"resourceMeta"`

	// statusFeedback holds the values that rules select.
	// +optional
	StatusFeedback StatusFeedbackResult `json:"statusFeedback,omitzero"`

	// conditions of the manifest.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions"`
}

// ManifestResourceMeta identifies the object of a manifest.
type ManifestResourceMeta struct {
	// ordinal is the position of the manifest in the spec, from 0.
	Ordinal int32 `json:"ordinal"`
	// group is the API group. It and the following fields are empty if the manifest cannot be read.
	// +optional
	Group string `json:"group,omitempty"`
	// version in the manifest.
	// +optional
	Version string `json:"version,omitempty"`
	// kind in the manifest.
	// +optional
	Kind string `json:"kind,omitempty"`
	// resource is the plural name of the kind. Empty if the cluster does not serve the kind.
	// +optional
	Resource string `json:"resource,omitempty"`
	// name of the object.
	// +optional
	Name string `json:"name,omitempty"`
	// namespace of the object; empty if cluster-scoped.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// StatusFeedbackResult holds values of an object.
type StatusFeedbackResult struct {
	// values that rules select and the object has.
	// +listType=map
	// +listMapKey=name
	// +optional
	Values []FeedbackValue `json:"values,omitempty"`
}

// FeedbackValue is a value of an object.
type FeedbackValue struct {
	// name of the value in the rule.
	Name string `json:"name"`
	// fieldValue is the value.
	Value FieldValue `json:"fieldValue"`
}

// ValueType is the type of a value.
//
// +kubebuilder:validation:Enum=Integer;String;Boolean;JsonRaw
type ValueType string

const (
	// ValueInteger is an integer.
	ValueInteger ValueType = "Integer"
	// ValueString is a string.
	ValueString ValueType = "String"
	// ValueBoolean is true or false.
	ValueBoolean ValueType = "Boolean"
	// ValueJSONRaw is any other type, as JSON.
	ValueJSONRaw ValueType = "JsonRaw"
)

// FieldValue is a value; only the field of its type is set.
type FieldValue struct {
	// type is which of the other fields is set.
	Type ValueType `json:"type"`
	// integer is the value, for type Integer.
	// +optional
	Integer *int64 `json:"integer,omitempty"`
	// string is the value, for type String.
	// +optional
	String *string `json:"string,omitempty"`
	// boolean is the value, for type Boolean.
	// +optional
	Boolean *bool `json:"boolean,omitempty"`
	// jsonRaw is the value, for type JsonRaw; at most 1024 characters.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	JSONRaw *string `json:"jsonRaw,omitempty"`
}
