// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Condition types of a ManifestWork and, the first four, of a manifest.
const (
	// ConditionApplied is True when the manifest is on the cluster as its strategy wants it.
	ConditionApplied = "Applied"
	// ConditionAvailable is True when the object exists, whatever state it is in.
	ConditionAvailable = "Available"
	// ConditionStatusFeedbackSynced is True when all values that rules ask for were looked up.
	ConditionStatusFeedbackSynced = "StatusFeedbackSynced"
	// ConditionComplete, which rules make, is True when the manifest is done: it is not
	// written any more, and if the work has it the work rests.
	ConditionComplete = "Complete"
	// ConditionProgressing and ConditionDegraded are made by rules, for those who roll out.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is True when an update went wrong.
	ConditionDegraded = "Degraded"
	// ConditionDeleting is True while a deleted work is still there.
	ConditionDeleting = "Deleting"
)

// Reasons of a manifest's conditions.
const (
	// ReasonManifestApplied goes with Applied=True.
	ReasonManifestApplied = "AppliedManifestComplete"
	// ReasonManifestNotApplied goes with Applied=False.
	ReasonManifestNotApplied = "AppliedManifestFailed"
	// ReasonIgnoreFields goes with Applied=False: fields to ignore cannot be found.
	ReasonIgnoreFields = "AppliedManifestSSAIgnoreFieldError"
	// ReasonResourceAvailable goes with Available=True.
	ReasonResourceAvailable = "ResourceAvailable"
	// ReasonResourceNotAvailable goes with Available=False.
	ReasonResourceNotAvailable = "ResourceNotAvailable"
	// ReasonFetchingFailed goes with Available=Unknown: the cluster did not answer.
	ReasonFetchingFailed = "FetchingResourceFailed"
	// ReasonIncompleteMeta goes with Available=Unknown: it is not known where to look.
	ReasonIncompleteMeta = "IncompleteResourceMeta"
	// ReasonNoFeedback goes with StatusFeedbackSynced=True: no rule asks for a value.
	ReasonNoFeedback = "NoStatusFeedbackSynced"
	// ReasonFeedbackSynced goes with StatusFeedbackSynced=True.
	ReasonFeedbackSynced = "StatusFeedbackSynced"
	// ReasonFeedbackFailed goes with StatusFeedbackSynced=False.
	ReasonFeedbackFailed = "StatusFeedbackSyncFailed"
	// ReasonRuleEvaluated goes with a condition that a rule made.
	ReasonRuleEvaluated = "ConditionRuleEvaluated"
	// ReasonRuleInvalid goes with Unknown: the rule does not fit the object.
	ReasonRuleInvalid = "ConditionRuleInvalid"
	// ReasonRuleExpressionError goes with False: an expression is wrong.
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
	// ReasonRulesAggregated goes with what rules say of all manifests together.
	ReasonRulesAggregated = "ConditionRulesAggregated"
	// ReasonWorkDeleting goes with Deleting=True.
	ReasonWorkDeleting = "WorkDeleting"
)

// ManifestWorkStatus is what became of a work.
type ManifestWorkStatus struct {
	// conditions are those of the work.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// resourceStatus is what became of each manifest.
	// +optional
	ResourceStatus ManifestResourceStatus `json:"resourceStatus,omitzero"`
}

// ManifestResourceStatus is what became of each manifest.
type ManifestResourceStatus struct {
	// manifests has an item for each manifest of the spec, in its order.
	// +optional
	Manifests []ManifestCondition `json:"manifests,omitempty"`
}

// ManifestCondition is what became of one manifest.
type ManifestCondition struct {
	// resourceMeta names the object.
	ResourceMeta ManifestResourceMeta `json:"resourceMeta"`

	// statusFeedback holds the values that rules ask for.
	// +optional
	StatusFeedback StatusFeedbackResult `json:"statusFeedback,omitzero"`

	// conditions are those of the manifest.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions"`
}

// ManifestResourceMeta names the object of a manifest.
type ManifestResourceMeta struct {
	// ordinal is the manifest's place in the spec, from 0.
	Ordinal int32 `json:"ordinal"`
	// group is the API group. What follows is empty if the manifest cannot be read.
	// +optional
	Group string `json:"group,omitempty"`
	// version is the one that the manifest has.
	// +optional
	Version string `json:"version,omitempty"`
	// kind is the one that the manifest has.
	// +optional
	Kind string `json:"kind,omitempty"`
	// resource is the kind's name in URLs. Empty: the cluster does not know the kind.
	// +optional
	Resource string `json:"resource,omitempty"`
	// name is the object's.
	// +optional
	Name string `json:"name,omitempty"`
	// namespace is the object's. Empty: it is in none.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// StatusFeedbackResult holds values of an object.
type StatusFeedbackResult struct {
	// values are those that rules ask for and the object has.
	// +listType=map
	// +listMapKey=name
	// +optional
	Values []FeedbackValue `json:"values,omitempty"`
}

// FeedbackValue is a value of an object.
type FeedbackValue struct {
	// name is the one that the rule gives it.
	Name string `json:"name"`
	// fieldValue is the value.
	Value FieldValue `json:"fieldValue"`
}

// ValueType is the type of a value.
//
// +kubebuilder:validation:Enum=Integer;String;Boolean;JsonRaw
type ValueType string

const (
	// ValueInteger is a whole number.
	ValueInteger ValueType = "Integer"
	// ValueString is a text.
	ValueString ValueType = "String"
	// ValueBoolean is true or false.
	ValueBoolean ValueType = "Boolean"
	// ValueJSONRaw is anything else, as JSON.
	ValueJSONRaw ValueType = "JsonRaw"
)

// FieldValue is a value of the type that it names; the other fields are empty.
type FieldValue struct {
	// type says which of the others is set.
	Type ValueType `json:"type"`
	// integer is set with type Integer.
	// +optional
	Integer *int64 `json:"integer,omitempty"`
	// string is set with type String.
	// +optional
	String *string `json:"string,omitempty"`
	// boolean is set with type Boolean.
	// +optional
	Boolean *bool `json:"boolean,omitempty"`
	// jsonRaw is set with type JsonRaw, and has at most 1024 characters.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	JSONRaw *string `json:"jsonRaw,omitempty"`
}
