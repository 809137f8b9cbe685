// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types of an ImmutabilityPolicy.
const (
	// ConditionCompiled is True once every path and expression of the policy
	// can be evaluated.
	ConditionCompiled = "Compiled"
	// ConditionEnforced is True while the policy is applied to requests.
	ConditionEnforced = "Enforced"
)

// Reasons of an ImmutabilityPolicy's conditions.
const (
	// ReasonCompiled goes with Compiled=True.
	ReasonCompiled = "Compiled"
	// ReasonExpressionWarnings goes with Compiled=True: an expression or a path uses a field that the
	// matched resources do not have, or that has another type there.
	ReasonExpressionWarnings = "ExpressionWarnings"
	// ReasonCompileError goes with Compiled=False: the message names the field and the error.
	ReasonCompileError = "CompileError"
	// ReasonEnforced goes with Enforced=True.
	ReasonEnforced = "Enforced"
	// ReasonLookupForbidden goes with Enforced=False: RBAC forbids the gateway to read the objects
	// of a lookup.
	ReasonLookupForbidden = "LookupForbidden"
	// ReasonNotCompiled goes with Enforced=False.
	ReasonNotCompiled = "NotCompiled"
	// ReasonNothingMatched goes with Enforced=False: the policy matches no resource of the hub.
	ReasonNothingMatched = "NothingMatched"
	// ReasonFailNotAllowed goes with Enforced=True: failurePolicy Fail is not allowed for the API
	// groups in the message.
	ReasonFailNotAllowed = "FailNotAllowed"
	// ReasonNotExportable goes with Enforced=True: enforcement Native is not possible, so the
	// gateway enforces the policy; the message is the cause.
	ReasonNotExportable = "NotExportable"
)

// ImmutabilityPolicy prevents changes of fields of other objects.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:JSONPath=`.spec.enforcement`,name="Enforcement",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Compiled")].status`,name="Compiled",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Enforced")].status`,name="Enforced",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.matchedResources`,name="Matches",type=integer
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.reason=="ExpressionWarnings")].message`,name="Warning",type=string,priority=1
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
type ImmutabilityPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of an object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the policy matches and enforces.
	// +required
	Spec ImmutabilityPolicySpec `json:"spec"`

	// status is whether the policy is enforced.
	// +optional
	Status ImmutabilityPolicyStatus `json:"status,omitzero"`
}

// Enforcement is what happens to a request that violates a policy.
// +kubebuilder:validation:Enum=Deny;Warn;Audit;Native
type Enforcement string

const (
	// EnforcementDeny rejects the request.
	EnforcementDeny Enforcement = "Deny"
	// EnforcementWarn allows it with a warning to the caller.
	EnforcementWarn Enforcement = "Warn"
	// EnforcementAudit allows it with an annotation in the audit log.
	EnforcementAudit Enforcement = "Audit"
	// EnforcementNative writes the policy as a ValidatingAdmissionPolicy, so that the API server
	// rejects the request without the gateway.
	EnforcementNative Enforcement = "Native"
)

// FailurePolicy is what happens to a request while the policy cannot be
// evaluated.
// +kubebuilder:validation:Enum=Fail;Ignore
type FailurePolicy string

const (
	// FailurePolicyFail rejects the request.
	FailurePolicyFail FailurePolicy = "Fail"
	// FailurePolicyIgnore allows it with an annotation in the audit log.
	FailurePolicyIgnore FailurePolicy = "Ignore"
)

// ImmutabilityPolicySpec is what a policy matches and enforces.
// +kubebuilder:validation:XValidation:rule="has(self.fields) || has(self.validations) || has(self.guards) || has(self.lookups)",message="a policy needs at least one of fields, validations, guards and lookups"
type ImmutabilityPolicySpec struct {
	// match selects the requests to which the policy applies.
	// +required
	Match PolicyMatch `json:"match"`

	// enforcement is Deny, Warn, Audit or Native. Default Deny.
	// +kubebuilder:default=Deny
	// +optional
	Enforcement Enforcement `json:"enforcement,omitempty"`

	// failurePolicy is Ignore or Fail. Fail counts only for API groups that the gateway's
	// configuration allows. Default Ignore.
	// +kubebuilder:default=Ignore
	// +optional
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`

	// compare prepares the old object for the comparison with the new one. If unset, it is not
	// changed.
	// +optional
	Compare *Comparison `json:"compare,omitempty"`

	// fields are the fields whose changes are restricted. If unset, none.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	Fields []FieldRule `json:"fields,omitempty"`

	// validations are further CEL conditions, as in a ValidatingAdmissionPolicy. If unset, none.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Validations []Validation `json:"validations,omitempty"`

	// lookups are other objects that expressions can read. If unset, none.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	Lookups []Lookup `json:"lookups,omitempty"`

	// guards protect a minimum number of objects from deletion or from a change after which they do
	// not count. If unset, none.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Guards []Guard `json:"guards,omitempty"`
}

// PolicyMatch selects requests. All of its fields must match.
type PolicyMatch struct {
	// resourceRules are API groups, versions, resources and operations, as in a
	// ValidatingAdmissionPolicy without resourceNames; one must match. Groups and resources cannot
	// be "*". Operations are CREATE, UPDATE and DELETE.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +required
	ResourceRules []admissionregistrationv1.RuleWithOperations `json:"resourceRules"`

	// namespaceSelector matches the labels of the object's namespace. If unset, all; a
	// cluster-scoped object always matches.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// objectSelector matches the labels of the old or the new object. If unset, all.
	// +optional
	ObjectSelector *metav1.LabelSelector `json:"objectSelector,omitempty"`

	// matchConditions are CEL expressions that must all be true. If unset, none.
	// +kubebuilder:validation:MaxItems=60
	// +listType=map
	// +listMapKey=name
	// +optional
	MatchConditions []admissionregistrationv1.MatchCondition `json:"matchConditions,omitempty"`
}

// Comparison prepares the old object for the comparison with the new one.
type Comparison struct {
	// defaultOld sets defaults for fields that the old object lacks. If unset, none.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=path
	// +optional
	DefaultOld []DefaultOld `json:"defaultOld,omitempty"`

	// emptyEqualsUnset treats an empty list, map, object or string as unset, because many clients
	// drop empty values when they write an object. Values false and 0 are never unset. Default
	// true.
	// +kubebuilder:default=true
	// +optional
	EmptyEqualsUnset *bool `json:"emptyEqualsUnset,omitempty"`
}

// DefaultOld sets the default of a field that the old object lacks.
type DefaultOld struct {
	// path of the field.
	// +required
	Path FieldPath `json:"path"`

	// expression is the value, in CEL; it can read oldObject.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +required
	Expression string `json:"expression"`
}

// FieldPath is a path of fields from the root of an object, separated by dots. For the items of a
// list, add the key field in brackets: spec.extensions[name].plan is the plan of each extension,
// matched by name.
// +kubebuilder:validation:MaxLength=512
// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_-]*(\[[A-Za-z_][A-Za-z0-9_-]*\])?(\.[A-Za-z_][A-Za-z0-9_-]*(\[[A-Za-z_][A-Za-z0-9_-]*\])?)*$`
type FieldPath string

// FieldMode is how changes of a field are restricted.
// +kubebuilder:validation:Enum=Immutable;OnceSet;CannotUnset;NoFalse;NoDowngrade;KeepItems;SetEqual
type FieldMode string

const (
	// FieldModeImmutable forbids setting, changing or unsetting a field after creation.
	FieldModeImmutable FieldMode = "Immutable"
	// FieldModeOnceSet allows setting a field at any time, and is then like Immutable.
	FieldModeOnceSet FieldMode = "OnceSet"
	// FieldModeCannotUnset allows changing but not unsetting a field.
	FieldModeCannotUnset FieldMode = "CannotUnset"
	// FieldModeNoFalse forbids changing a field from true to false or unset.
	FieldModeNoFalse FieldMode = "NoFalse"
	// FieldModeNoDowngrade forbids lowering a version.
	FieldModeNoDowngrade FieldMode = "NoDowngrade"
	// FieldModeKeepItems forbids removing items of a list. Items can be added and changed.
	FieldModeKeepItems FieldMode = "KeepItems"
	// FieldModeSetEqual makes a list immutable except for the order of its items.
	FieldModeSetEqual FieldMode = "SetEqual"
)

// FieldRule restricts changes of a field.
// +kubebuilder:validation:XValidation:rule="!has(self.exceptPaths) || self.mode == 'Immutable'",message="exceptPaths is allowed with mode Immutable only"
// +kubebuilder:validation:XValidation:rule="self.mode != 'KeepItems' || self.path.endsWith(']')",message="mode KeepItems needs a path that ends with a key in brackets, such as spec.addonProfiles[name]"
type FieldRule struct {
	// path of the field.
	// +required
	Path FieldPath `json:"path"`

	// mode is how changes are restricted.
	// +required
	Mode FieldMode `json:"mode"`

	// exceptPaths are fields below path, relative to it, that can change. If unset, none.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	// +optional
	ExceptPaths []FieldPath `json:"exceptPaths,omitempty"`

	// message to the caller if the rule is violated. If unset, a text that contains "field is
	// immutable".
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`

	// when is a CEL expression; the rule applies only if it is true. If unset, always.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	When string `json:"when,omitempty"`
}

// Validation is a condition that an object must meet.
type Validation struct {
	// path of the field to report if the condition is not met. If unset, spec.
	// +optional
	Path FieldPath `json:"path,omitempty"`

	// expression is the condition, in CEL, with the variables object, oldObject, request and
	// namespaceObject of a ValidatingAdmissionPolicy; results of lookups are in params.lookups.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	// +required
	Expression string `json:"expression"`

	// message to the caller if the condition is not met. If unset, the expression.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`

	// messageExpression is a CEL expression for the message; if it fails, message is used. If
	// unset, message.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	MessageExpression string `json:"messageExpression,omitempty"`
}

// ImmutabilityPolicyStatus is whether a policy is enforced.
type ImmutabilityPolicyStatus struct {
	// conditions are Compiled and Enforced.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// expressionWarnings are problems found when the expressions were checked against the types of
	// the matched resources. Empty if there are none.
	// +listType=atomic
	// +optional
	ExpressionWarnings []admissionregistrationv1.ExpressionWarning `json:"expressionWarnings,omitempty"`

	// matchedResources is the number of resources of the hub that the policy matches.
	// +optional
	MatchedResources int32 `json:"matchedResources"`
}

// ImmutabilityPolicyList is a list of ImmutabilityPolicies.
//
// +kubebuilder:object:root=true
type ImmutabilityPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ImmutabilityPolicy `json:"items"`
}
