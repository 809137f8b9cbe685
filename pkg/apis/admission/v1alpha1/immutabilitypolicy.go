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
	// ReasonTypesDoNotFit goes with Compiled True: an expression or a path names a field that
	// what is matched does not have, or takes it for another type.
	ReasonTypesDoNotFit = "TypesDoNotFit"
	// ReasonCompileError goes with Compiled=False: the message names the field
	// and what is wrong with it.
	ReasonCompileError = "CompileError"
	// ReasonEnforced goes with Enforced=True.
	ReasonEnforced = "Enforced"
	// ReasonLookupForbidden goes with Enforced=False: the gateway may not read
	// what a lookup names.
	ReasonLookupForbidden = "LookupForbidden"
	// ReasonNotCompiled goes with Enforced=False.
	ReasonNotCompiled = "NotCompiled"
	// ReasonNothingMatched goes with Enforced False: the hub has nothing of what the policy
	// matches.
	ReasonNothingMatched = "NothingMatched"
	// ReasonFailNotAllowed goes with Enforced=True: failurePolicy Fail is not
	// honoured, the message says for which API groups.
	ReasonFailNotAllowed = "FailNotAllowed"
	// ReasonNotExportable goes with Enforced=True: enforcement Native is not
	// possible, so the gateway enforces the policy; the message says why.
	ReasonNotExportable = "NotExportable"
)

// ImmutabilityPolicy keeps fields of other objects from changing.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:JSONPath=`.spec.enforcement`,name="Enforcement",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Compiled")].status`,name="Compiled",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Enforced")].status`,name="Enforced",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.matchedResources`,name="Matches",type=integer
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.reason=="TypesDoNotFit")].message`,name="Warning",type=string,priority=1
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
type ImmutabilityPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the policy demands of which objects.
	Spec ImmutabilityPolicySpec `json:"spec"`

	// status says whether it is enforced.
	// +optional
	Status ImmutabilityPolicyStatus `json:"status,omitzero"`
}

// Enforcement is what happens to a request that breaks a policy.
// +kubebuilder:validation:Enum=Deny;Warn;Audit;Native
type Enforcement string

const (
	// EnforcementDeny refuses the request.
	EnforcementDeny Enforcement = "Deny"
	// EnforcementWarn lets it pass with a warning to the caller.
	EnforcementWarn Enforcement = "Warn"
	// EnforcementAudit lets it pass with an annotation in the audit log.
	EnforcementAudit Enforcement = "Audit"
	// EnforcementNative writes the policy as a ValidatingAdmissionPolicy, so that
	// the API server refuses the request without the gateway.
	EnforcementNative Enforcement = "Native"
)

// FailurePolicy is what happens to a request while the policy cannot be
// evaluated.
// +kubebuilder:validation:Enum=Fail;Ignore
type FailurePolicy string

const (
	// FailurePolicyFail refuses the request.
	FailurePolicyFail FailurePolicy = "Fail"
	// FailurePolicyIgnore lets it pass with an annotation in the audit log.
	FailurePolicyIgnore FailurePolicy = "Ignore"
)

// ImmutabilityPolicySpec is what a policy demands of which objects.
// +kubebuilder:validation:XValidation:rule="has(self.fields) || has(self.validations) || has(self.guards) || has(self.lookups)",message="a policy needs at least one of fields, validations, guards and lookups"
type ImmutabilityPolicySpec struct {
	// match says to which requests the policy applies.
	Match PolicyMatch `json:"match"`

	// enforcement is Deny, the default, Warn, Audit or Native.
	// +kubebuilder:default=Deny
	// +optional
	Enforcement Enforcement `json:"enforcement,omitempty"`

	// failurePolicy is Ignore, the default, or Fail, which counts only for API
	// groups that the gateway's configuration allows it for.
	// +kubebuilder:default=Ignore
	// +optional
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`

	// compare says how the old object is made comparable with the new one. Empty
	// means as it is.
	// +optional
	Compare *Comparison `json:"compare,omitempty"`

	// fields are the fields that may not change, or not in any way. Empty means
	// none.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	Fields []FieldRule `json:"fields,omitempty"`

	// validations are further conditions, in CEL, as in a
	// ValidatingAdmissionPolicy. Empty means none.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Validations []Validation `json:"validations,omitempty"`

	// lookups are other objects that expressions may read. Empty means none.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	Lookups []Lookup `json:"lookups,omitempty"`

	// guards keep a number of objects from being deleted, or changed into
	// something else. Empty means none.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Guards []Guard `json:"guards,omitempty"`
}

// PolicyMatch says to which requests a policy applies: to those that all of it
// matches.
type PolicyMatch struct {
	// resourceRules are the API groups, versions, resources and operations, as
	// in a ValidatingAdmissionPolicy without resourceNames: one of them must
	// match. Groups and resources are named, never "*". Operations are CREATE,
	// UPDATE and DELETE.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	ResourceRules []admissionregistrationv1.RuleWithOperations `json:"resourceRules"`

	// namespaceSelector is matched with the labels of the object's namespace.
	// Empty means all; a cluster-scoped object always matches.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// objectSelector is matched with the labels of the object, old or new. Empty
	// means all.
	// +optional
	ObjectSelector *metav1.LabelSelector `json:"objectSelector,omitempty"`

	// matchConditions are CEL expressions that must all be true. Empty means
	// none.
	// +kubebuilder:validation:MaxItems=60
	// +listType=map
	// +listMapKey=name
	// +optional
	MatchConditions []admissionregistrationv1.MatchCondition `json:"matchConditions,omitempty"`
}

// Comparison says how the old object is made comparable with the new one.
type Comparison struct {
	// defaultOld gives fields that the old object lacks the value that they had
	// by default. Empty means none.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=path
	// +optional
	DefaultOld []DefaultOld `json:"defaultOld,omitempty"`

	// emptyEqualsUnset makes an empty list, map, object or text equal to none at
	// all, since many clients drop what is empty when they write an object back.
	// It defaults to true. false and 0 are values always.
	// +kubebuilder:default=true
	// +optional
	EmptyEqualsUnset *bool `json:"emptyEqualsUnset,omitempty"`
}

// DefaultOld gives a field that the old object lacks the value that it had by
// default.
type DefaultOld struct {
	// path is the field.
	Path FieldPath `json:"path"`

	// expression is the value, in CEL; it reads oldObject.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression"`
}

// FieldPath is a path of fields from the root of an object, with dots between
// them. A list may be followed by the field that tells its items apart, in
// brackets: spec.extensions[name].plan is the plan of each extension, matched by
// name.
// +kubebuilder:validation:MaxLength=512
// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_-]*(\[[A-Za-z_][A-Za-z0-9_-]*\])?(\.[A-Za-z_][A-Za-z0-9_-]*(\[[A-Za-z_][A-Za-z0-9_-]*\])?)*$`
type FieldPath string

// FieldMode is the way in which a field may not change.
// +kubebuilder:validation:Enum=Immutable;OnceSet;CannotUnset;NoFalse;NoDowngrade;KeepItems;SetEqual
type FieldMode string

const (
	// FieldModeImmutable lets a field neither be set, changed nor unset after
	// creation.
	FieldModeImmutable FieldMode = "Immutable"
	// FieldModeOnceSet lets a field be set at any time; then it is immutable.
	FieldModeOnceSet FieldMode = "OnceSet"
	// FieldModeCannotUnset lets a field change but not be unset.
	FieldModeCannotUnset FieldMode = "CannotUnset"
	// FieldModeNoFalse keeps a field that is true from becoming false or unset.
	FieldModeNoFalse FieldMode = "NoFalse"
	// FieldModeNoDowngrade keeps a version from becoming lower.
	FieldModeNoDowngrade FieldMode = "NoDowngrade"
	// FieldModeKeepItems keeps the items of a list from going: they may be added
	// and changed.
	FieldModeKeepItems FieldMode = "KeepItems"
	// FieldModeSetEqual makes a list immutable but for the order of its items.
	FieldModeSetEqual FieldMode = "SetEqual"
)

// FieldRule is a field and the way in which it may not change.
// +kubebuilder:validation:XValidation:rule="!has(self.exceptPaths) || self.mode == 'Immutable'",message="exceptPaths goes with mode Immutable only"
// +kubebuilder:validation:XValidation:rule="self.mode != 'KeepItems' || self.path.endsWith(']')",message="mode KeepItems needs a path that ends with a key in brackets, such as spec.addonProfiles[name]"
type FieldRule struct {
	// path is the field.
	Path FieldPath `json:"path"`

	// mode is the way in which it may not change.
	Mode FieldMode `json:"mode"`

	// exceptPaths are fields under path that may change, written from there.
	// Empty means none.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	// +optional
	ExceptPaths []FieldPath `json:"exceptPaths,omitempty"`

	// message is what a caller reads who breaks the rule. Empty means a text
	// that contains "field is immutable".
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`

	// when is a CEL expression; the rule counts only if it is true. Empty means
	// always.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	When string `json:"when,omitempty"`
}

// Validation is a condition that an object must meet.
type Validation struct {
	// path is the field that a caller is shown who breaks it. Empty means spec.
	// +optional
	Path FieldPath `json:"path,omitempty"`

	// expression is the condition, in CEL, with the variables object, oldObject,
	// request and namespaceObject of a ValidatingAdmissionPolicy; what lookups
	// found is in params.lookups.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	Expression string `json:"expression"`

	// message is what a caller reads who breaks it. Empty means the expression.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`

	// messageExpression is a CEL expression for the message; if it fails, message
	// is used. Empty means message.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	MessageExpression string `json:"messageExpression,omitempty"`
}

// ImmutabilityPolicyStatus says whether a policy is enforced.
type ImmutabilityPolicyStatus struct {
	// conditions are Compiled and Enforced.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// expressionWarnings are what checking the expressions against the types of
	// the matched resources found. Empty means nothing.
	// +listType=atomic
	// +optional
	ExpressionWarnings []admissionregistrationv1.ExpressionWarning `json:"expressionWarnings,omitempty"`

	// matchedResources is how many resources of the hub the policy matches.
	// +optional
	MatchedResources int32 `json:"matchedResources"`
}

// ImmutabilityPolicyList is a list of ImmutabilityPolicies.
//
// +kubebuilder:object:root=true
type ImmutabilityPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the policies.
	Items []ImmutabilityPolicy `json:"items"`
}
