// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// UpdateStrategyType is how an object is written.
//
// +kubebuilder:validation:Enum=Update;CreateOnly;ServerSideApply;ReadOnly
type UpdateStrategyType string

const (
	// UpdateStrategyUpdate makes the object match the manifest. Labels, annotations, owners and
	// finalizers of others stay.
	UpdateStrategyUpdate UpdateStrategyType = "Update"
	// UpdateStrategyCreateOnly creates the object if it does not exist, and never changes it.
	UpdateStrategyCreateOnly UpdateStrategyType = "CreateOnly"
	// UpdateStrategyServerSideApply applies the manifest with server-side apply.
	UpdateStrategyServerSideApply UpdateStrategyType = "ServerSideApply"
	// UpdateStrategyReadOnly writes nothing and only reports the object.
	UpdateStrategyReadOnly UpdateStrategyType = "ReadOnly"
)

// UpdateStrategy is how an object is written.
type UpdateStrategy struct {
	// type is Update, CreateOnly, ServerSideApply or ReadOnly. Default Update.
	// +kubebuilder:default=Update
	Type UpdateStrategyType `json:"type"`

	// serverSideApply is for type ServerSideApply.
	// +optional
	ServerSideApply *ServerSideApplyConfig `json:"serverSideApply,omitempty"`
}

// ServerSideApplyConfig configures server-side apply.
type ServerSideApplyConfig struct {
	// force takes over fields of other managers. Default false: conflicts fail the apply.
	// +optional
	Force bool `json:"force,omitempty"`

	// fieldManager is the field manager. It must begin with work-agent. Default work-agent.
	// +kubebuilder:default=work-agent
	// +kubebuilder:validation:Pattern=`^work-agent`
	// +optional
	FieldManager string `json:"fieldManager,omitempty"`

	// ignoreFields are fields of the manifest that clients on the cluster can change.
	// +listType=map
	// +listMapKey=condition
	// +optional
	IgnoreFields []IgnoreField `json:"ignoreFields,omitempty"`
}

// IgnoreFieldsCondition is when fields are ignored.
//
// +kubebuilder:validation:Enum=OnSpokePresent;OnSpokeChange
type IgnoreFieldsCondition string

const (
	// IgnoreFieldsOnSpokePresent ignores them if the object exists: the agent writes them only when
	// it creates the object.
	IgnoreFieldsOnSpokePresent IgnoreFieldsCondition = "OnSpokePresent"
	// IgnoreFieldsOnSpokeChange ignores changes of them on the cluster until the manifest changes.
	IgnoreFieldsOnSpokeChange IgnoreFieldsCondition = "OnSpokeChange"
)

// IgnoreField selects fields to ignore.
type IgnoreField struct {
	// condition is OnSpokePresent or OnSpokeChange. Default OnSpokePresent.
	// +kubebuilder:default=OnSpokePresent
	Condition IgnoreFieldsCondition `json:"condition"`

	// jsonPaths select fields, such as .spec.replicas. They must not select lists.
	// +optional
	JSONPaths []string `json:"jsonPaths,omitempty"`

	// jsonPointers select fields by RFC 6901, such as /spec/replicas.
	// +optional
	JSONPointers []string `json:"jsonPointers,omitempty"`

	// jqPathExpressions select fields by jq, such as .spec.template.spec.containers[] |
	// select(.name == "proxy").
	// +optional
	JQPathExpressions []string `json:"jqPathExpressions,omitempty"`
}

// FeedbackRuleType is how values are selected.
//
// +kubebuilder:validation:Enum=WellKnownStatus;JSONPaths
type FeedbackRuleType string

const (
	// FeedbackWellKnownStatus selects predefined values of a kind. They exist for Deployments,
	// DaemonSets, Jobs and Pods.
	FeedbackWellKnownStatus FeedbackRuleType = "WellKnownStatus"
	// FeedbackJSONPaths selects values by path.
	FeedbackJSONPaths FeedbackRuleType = "JSONPaths"
)

// FeedbackRule selects values of an object to report.
type FeedbackRule struct {
	// type is WellKnownStatus or JSONPaths.
	Type FeedbackRuleType `json:"type"`

	// jsonPaths select values, for type JSONPaths.
	// +listType=map
	// +listMapKey=name
	// +optional
	JSONPaths []JSONPath `json:"jsonPaths,omitempty"`
}

// JSONPath selects a value of an object.
type JSONPath struct {
	// name of the value in the status.
	Name string `json:"name"`

	// version of the object to which the path applies. If unset, any.
	// +optional
	Version string `json:"version,omitempty"`

	// path is a JSONPath as in kubectl, without braces, such as
	// .status.conditions[?(@.type=="Ready")].status.
	Path string `json:"path"`
}

// ConditionRuleType is how a condition is computed.
//
// +kubebuilder:validation:Enum=WellKnownConditions;CEL
type ConditionRuleType string

const (
	// ConditionWellKnown uses the predefined rules of a kind: Complete for Jobs and Pods.
	ConditionWellKnown ConditionRuleType = "WellKnownConditions"
	// ConditionCEL uses CEL expressions.
	ConditionCEL ConditionRuleType = "CEL"
)

// ConditionRule computes a condition from an object.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'CEL' || self.condition != \"\"",message="Condition is required for CEL rules"
type ConditionRule struct {
	// condition is the type of the condition.
	Condition string `json:"condition"`

	// type is WellKnownConditions or CEL.
	Type ConditionRuleType `json:"type"`

	// celExpressions on the variable object. The condition is True if all are true.
	// +optional
	CELExpressions []string `json:"celExpressions,omitempty"`

	// message of the condition. If unset, one that names the condition.
	// +optional
	Message string `json:"message,omitempty"`

	// messageExpression computes the message from the variables object and result; it overrides
	// message.
	// +optional
	MessageExpression string `json:"messageExpression,omitempty"`
}
