// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// UpdateStrategyType is how an object is written.
//
// +kubebuilder:validation:Enum=Update;CreateOnly;ServerSideApply;ReadOnly
type UpdateStrategyType string

const (
	// UpdateStrategyUpdate makes the object what the manifest says; labels, annotations and
	// owners that others gave it stay.
	UpdateStrategyUpdate UpdateStrategyType = "Update"
	// UpdateStrategyCreateOnly makes the object if it is not there, and never changes it.
	UpdateStrategyCreateOnly UpdateStrategyType = "CreateOnly"
	// UpdateStrategyServerSideApply applies the manifest on the API server's side.
	UpdateStrategyServerSideApply UpdateStrategyType = "ServerSideApply"
	// UpdateStrategyReadOnly writes nothing. The object is only reported.
	UpdateStrategyReadOnly UpdateStrategyType = "ReadOnly"
)

// UpdateStrategy is how an object is written.
type UpdateStrategy struct {
	// type is Update, CreateOnly, ServerSideApply or ReadOnly. It defaults to Update.
	// +kubebuilder:default=Update
	Type UpdateStrategyType `json:"type"`

	// serverSideApply is for type ServerSideApply.
	// +optional
	ServerSideApply *ServerSideApplyConfig `json:"serverSideApply,omitempty"`
}

// ServerSideApplyConfig is how a manifest is applied on the API server's side.
type ServerSideApplyConfig struct {
	// force takes fields that other managers hold, instead of failing.
	// +optional
	Force bool `json:"force,omitempty"`

	// fieldManager is the name under which the fields are held. It begins with work-agent,
	// which is the default.
	// +kubebuilder:default=work-agent
	// +kubebuilder:validation:Pattern=`^work-agent`
	// +optional
	FieldManager string `json:"fieldManager,omitempty"`

	// ignoreFields are fields of the manifest that are left to others on the cluster.
	// +listType=map
	// +listMapKey=condition
	// +optional
	IgnoreFields []IgnoreField `json:"ignoreFields,omitempty"`
}

// IgnoreFieldsCondition is when fields are left to others.
//
// +kubebuilder:validation:Enum=OnSpokePresent;OnSpokeChange
type IgnoreFieldsCondition string

const (
	// IgnoreFieldsOnSpokePresent leaves them once the object is there: they are only
	// written when it is made.
	IgnoreFieldsOnSpokePresent IgnoreFieldsCondition = "OnSpokePresent"
	// IgnoreFieldsOnSpokeChange leaves changes of them until the manifest is changed.
	IgnoreFieldsOnSpokeChange IgnoreFieldsCondition = "OnSpokeChange"
)

// IgnoreField names fields that are left to others.
type IgnoreField struct {
	// condition is when: OnSpokePresent or OnSpokeChange. It defaults to OnSpokePresent.
	// +kubebuilder:default=OnSpokePresent
	Condition IgnoreFieldsCondition `json:"condition"`

	// jsonPaths name fields, such as .spec.replicas. They must not name lists.
	// +optional
	JSONPaths []string `json:"jsonPaths,omitempty"`

	// jsonPointers name fields by RFC 6901, such as /spec/replicas.
	// +optional
	JSONPointers []string `json:"jsonPointers,omitempty"`

	// jqPathExpressions name fields in the language of jq, such as
	// .spec.template.spec.containers[] | select(.name == "proxy").
	// +optional
	JQPathExpressions []string `json:"jqPathExpressions,omitempty"`
}

// FeedbackRuleType is where values are found.
//
// +kubebuilder:validation:Enum=WellKnownStatus;JSONPaths
type FeedbackRuleType string

const (
	// FeedbackWellKnownStatus is for values that each object of a kind has. There are some
	// for Deployments, DaemonSets, Jobs and Pods.
	FeedbackWellKnownStatus FeedbackRuleType = "WellKnownStatus"
	// FeedbackJSONPaths is for values that paths name.
	FeedbackJSONPaths FeedbackRuleType = "JSONPaths"
)

// FeedbackRule says which values of an object are reported.
type FeedbackRule struct {
	// type is WellKnownStatus or JSONPaths.
	Type FeedbackRuleType `json:"type"`

	// jsonPaths name values, with type JSONPaths.
	// +listType=map
	// +listMapKey=name
	// +optional
	JSONPaths []JSONPath `json:"jsonPaths,omitempty"`
}

// JSONPath names a value of an object.
type JSONPath struct {
	// name is that of the value in the status.
	Name string `json:"name"`

	// version is that of the object for which the path is meant. Empty: any.
	// +optional
	Version string `json:"version,omitempty"`

	// path is a JSONPath as kubectl has them, without braces, such as
	// .status.conditions[?(@.type=="Ready")].status.
	Path string `json:"path"`
}

// ConditionRuleType is how a condition is found out.
//
// +kubebuilder:validation:Enum=WellKnownConditions;CEL
type ConditionRuleType string

const (
	// ConditionWellKnown is for what is known of a kind: when Jobs and Pods are Complete.
	ConditionWellKnown ConditionRuleType = "WellKnownConditions"
	// ConditionCEL is for expressions.
	ConditionCEL ConditionRuleType = "CEL"
)

// ConditionRule makes a condition from an object.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'CEL' || self.condition != \"\"",message="Condition is required for CEL rules"
type ConditionRule struct {
	// condition is the type of the condition.
	Condition string `json:"condition"`

	// type is WellKnownConditions or CEL.
	Type ConditionRuleType `json:"type"`

	// celExpressions are true or false of the variable object. The condition is True if
	// all of them are.
	// +optional
	CELExpressions []string `json:"celExpressions,omitempty"`

	// message is that of the condition. Empty: one that names it.
	// +optional
	Message string `json:"message,omitempty"`

	// messageExpression makes the message instead, of the variables object and result.
	// +optional
	MessageExpression string `json:"messageExpression,omitempty"`
}
